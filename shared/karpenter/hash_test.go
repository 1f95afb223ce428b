package karpenter

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// The hashes in testdata are on nodes in clusters: a change here makes every node drift. The comparison with
// Karpenter in integration/suites/upstream tests that the values are right; this test detects changes without
// Karpenter.
func TestHashesAreStable(t *testing.T) {
	pool, class := loadPool(t), loadClass(t)
	got := "nodepool " + NodePoolHashVersion + " " + poolHash(t, pool) + "\n" +
		"ec2nodeclass " + EC2NodeClassHashVersion + " " + classHash(t, class, "") + "\n" +
		"ec2nodeclass with authority " + EC2NodeClassHashVersion + " " + classHash(t, class, "Q0VSVA==") + "\n"
	golden := filepath.Join("testdata", "hashes.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("hashes (-golden +got):\n%s", diff)
	}
}

func TestFieldsOfNodePoolHash(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*NodePool)
		moves  bool
	}{
		{"label", func(p *NodePool) { p.Spec.Template.Labels["team"] = "other" }, true},
		{"annotation", func(p *NodePool) { p.Spec.Template.Annotations = map[string]string{"a": "b"} }, true},
		{"taint", func(p *NodePool) { p.Spec.Template.Spec.Taints[0].Value = "other" }, true},
		{"expiry", func(p *NodePool) { p.Spec.Template.Spec.ExpireAfter = NillableDuration{} }, true},
		{"class", func(p *NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "other" }, true},
		{"spelling of the expiry", func(p *NodePool) {
			p.Spec.Template.Spec.ExpireAfter = DurationOf(*p.Spec.Template.Spec.ExpireAfter.Duration)
		}, false},
		{"requirements", func(p *NodePool) { p.Spec.Template.Spec.Requirements = nil }, false},
		{"limits", func(p *NodePool) { p.Spec.Limits = nil }, false},
		{"weight", func(p *NodePool) { p.Spec.Weight = nil }, false},
		{"budgets", func(p *NodePool) { p.Spec.Disruption.Budgets = nil }, false},
		{"name", func(p *NodePool) { p.Name = "other" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := loadPool(t)
			before := poolHash(t, pool)
			c.change(pool)
			if moved := poolHash(t, pool) != before; moved != c.moves {
				t.Errorf("hash changed: %v, want %v", moved, c.moves)
			}
		})
	}
}

func TestFieldsOfEC2NodeClassHash(t *testing.T) {
	al2023, custom := AMIFamilyAL2023, AMIFamilyCustom
	for _, c := range []struct {
		name   string
		change func(*EC2NodeClassSpec)
		moves  bool
	}{
		{"user data", func(s *EC2NodeClassSpec) { s.UserData = &custom }, true},
		{"tags", func(s *EC2NodeClassSpec) { s.Tags["team"] = "other" }, true},
		{"disk", func(s *EC2NodeClassSpec) {
			s.BlockDeviceMappings[0].EBS.VolumeSize.Add(*s.BlockDeviceMappings[0].EBS.VolumeSize)
		}, true},
		{"kubelet", func(s *EC2NodeClassSpec) { delete(s.Kubelet, "maxPods") }, true},
		{"a kubelet field that Joist does not read", func(s *EC2NodeClassSpec) { s.Kubelet["logging"] = apiextensionsv1.JSON{Raw: []byte(`{}`)} }, true},
		{"enclaves", func(s *EC2NodeClassSpec) { s.EnclaveOptions = &EnclaveOptions{Enabled: true} }, true},
		{"no enclaves", func(s *EC2NodeClassSpec) { s.EnclaveOptions = &EnclaveOptions{} }, true},
		{"family", func(s *EC2NodeClassSpec) { s.AMIFamily = &custom }, true},
		{"family that the alias implies", func(s *EC2NodeClassSpec) { s.AMIFamily = &al2023 }, false},
		{"version of the alias", func(s *EC2NodeClassSpec) { s.AMISelectorTerms[0].Alias = "al2023@latest" }, false},
		{"subnets", func(s *EC2NodeClassSpec) { s.SubnetSelectorTerms = nil }, false},
		{"security groups", func(s *EC2NodeClassSpec) { s.SecurityGroupSelectorTerms = nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			class := loadClass(t)
			before := classHash(t, class, "")
			c.change(&class.Spec)
			if moved := classHash(t, class, "") != before; moved != c.moves {
				t.Errorf("hash changed: %v, want %v", moved, c.moves)
			}
		})
	}
}

// Settings of the kubelet are hashed as their text: two that differ only in the order of their bytes, and enclaves that
// are disabled or not mentioned, have different hashes. The order of keys has no effect.
func TestDifferentSettingsHaveDifferentHashes(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		`{}`, `{"enclaveOptions":{"enabled":false}}`, `{"enclaveOptions":{"enabled":true}}`,
		`{"kubelet":{"maxPods":12}}`, `{"kubelet":{"maxPods":21}}`, `{"kubelet":{"maxPods":"12"}}`,
		`{"kubelet":{"kubeReserved":{"cpu":"12m","memory":"21Mi"}}}`, `{"kubelet":{"kubeReserved":{"cpu":"21m","memory":"12Mi"}}}`,
		`{"kubelet":{"clusterDNS":["10.0.0.1","10.0.0.2"]}}`, `{"kubelet":{"clusterDNS":["10.0.0.2","10.0.0.1"]}}`,
	} {
		hash := hashSpec(t, text)
		if other, twice := seen[hash]; twice {
			t.Errorf("%s and %s have the hash %s", text, other, hash)
		}
		seen[hash] = text
	}
	for _, same := range [][2]string{
		{`{"kubelet":{"maxPods":12,"cpuCFSQuota":true}}`, `{"kubelet":{"cpuCFSQuota": true, "maxPods": 12}}`},
		{`{}`, `{"kubelet":{}}`}, {`{}`, `{"kubelet":null,"enclaveOptions":null}`},
	} {
		if a, b := hashSpec(t, same[0]), hashSpec(t, same[1]); a != b {
			t.Errorf("%s and %s have the hashes %s and %s", same[0], same[1], a, b)
		}
	}
}

func hashSpec(t *testing.T, text string) string {
	t.Helper()
	class := &EC2NodeClass{}
	class.Spec.AMISelectorTerms = []AMISelectorTerm{{Alias: "al2023@latest"}}
	if err := yaml.Unmarshal([]byte(text), &class.Spec); err != nil {
		t.Fatal(err)
	}
	return classHash(t, class, "")
}

func poolHash(t *testing.T, pool *NodePool) string {
	t.Helper()
	sum, err := pool.Hash()
	return checkedHash(t, sum, err)
}

func classHash(t *testing.T, class *EC2NodeClass, authority string) string {
	t.Helper()
	sum, err := class.Hash(authority)
	return checkedHash(t, sum, err)
}

func checkedHash(t *testing.T, sum string, err error) string {
	t.Helper()
	if err != nil || strings.Trim(sum, "0123456789") != "" {
		t.Fatalf("hash %q: %v", sum, err)
	}
	return sum
}

func loadPool(t *testing.T) *NodePool {
	t.Helper()
	pool := &NodePool{}
	load(t, "nodepool.yaml", pool)
	return pool
}

func loadClass(t *testing.T) *EC2NodeClass {
	t.Helper()
	class := &EC2NodeClass{}
	load(t, "ec2nodeclass.yaml", class)
	return class
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}
