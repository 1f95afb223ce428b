package bootstrap_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec/bootstrap"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
)

var update = flag.Bool("update", false, "update the golden files")

// golden compares with a golden file, with line ends as LF.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got = strings.ReplaceAll(got, "\r\n", "\n")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// defaultNode returns a node of a class without settings.
func defaultNode() bootstrap.Node {
	return bootstrap.Node{
		Cluster: catalog.ClusterFacts{Name: "demo", Endpoint: "https://e.example", CABundle: "Y2E=", ServiceCIDR: "10.100.0.0/16"},
		MaxPods: 17, Labels: map[string]string{"team": "shop"}, Taints: []corev1.Taint{karpenter.UnregisteredTaint()},
	}
}

// fullNode returns a node of a class with all settings.
func fullNode() bootstrap.Node {
	n := defaultNode()
	n.MaxPods, n.InstanceStore, n.ImageName = 42, karpenter.InstanceStorePolicyRAID0, "bottlerocket-aws-k8s-1.33-x86_64-v1.44.0-431fe75a"
	err := yaml.Unmarshal([]byte(`
clusterDNS: [10.0.1.100]
maxPods: 42
podsPerCore: 3
systemReserved: {cpu: 100m, memory: 100Mi}
kubeReserved: {cpu: 200m}
evictionHard: {memory.available: 5%, nodefs.available: 10%}
evictionSoft: {memory.available: 500Mi}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMaxPodGracePeriod: 60
imageGCHighThresholdPercent: 85
imageGCLowThresholdPercent: 80
cpuCFSQuota: true
`), &n.KubeletConfiguration)
	if err == nil {
		n.Kubelet, err = n.KubeletConfiguration.Parse()
	}
	if err != nil {
		panic(err) // the text above is wrong
	}
	n.Labels["node-role.kubernetes.io/web"] = "true"
	n.Taints = append([]corev1.Taint{
		{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}, {Key: "cni", Effect: corev1.TaintEffectNoExecute},
	}, n.Taints...)
	return n
}

// families are the families that write user data, with an example of a user's data for each.
var families = []struct{ name, custom string }{
	{karpenter.AMIFamilyAL2, "#!/bin/sh\necho hello\n"},
	{karpenter.AMIFamilyAL2023, "#!/bin/sh\necho hello\n"},
	{karpenter.AMIFamilyBottlerocket, "[settings.kernel]\nlockdown = 'integrity'\n\n[settings.kubernetes]\nallowed-unsafe-sysctls = ['net.core.somaxconn']\n"},
	{karpenter.AMIFamilyWindows2019, "Write-Host 'hello'"},
	{karpenter.AMIFamilyWindows2022, "<powershell>\nWrite-Host 'hello'\n</powershell>\n<persist>true</persist>"},
	{karpenter.AMIFamilyWindows2025, ""},
}

func TestGoldens(t *testing.T) {
	for _, family := range families {
		for kind, node := range map[string]bootstrap.Node{"poor": defaultNode(), "rich": fullNode()} {
			t.Run(family.name+" "+kind, func(t *testing.T) {
				if kind == "rich" {
					node.Custom = family.custom
				}
				got, err := bootstrap.Write(family.name, node)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, strings.ToLower(family.name)+"-"+kind+".txt", got)
			})
		}
	}
}

// TestUserDataHasEverySetting parses each family's user data and checks every setting.
func TestUserDataHasEverySetting(t *testing.T) {
	format := map[string]string{karpenter.AMIFamilyAL2: userdata.AL2, karpenter.AMIFamilyAL2023: userdata.AL2023, karpenter.AMIFamilyBottlerocket: userdata.Bottlerocket}
	for _, family := range families {
		t.Run(family.name, func(t *testing.T) {
			n := fullNode()
			n.Custom = family.custom
			text, err := bootstrap.Write(family.name, n)
			if err != nil {
				t.Fatal(err)
			}
			got, err := userdata.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			want := userdata.Joining{
				Format: userdata.Windows, ClusterName: "demo", Endpoint: "https://e.example", Authority: "Y2E=", RAID0: bootstrap.JoinsInstanceStore(family.name),
				Labels: map[string]string{"team": "shop", karpenter.NodeDoNotSyncTaintsLabelKey: "true"}, Taints: n.Taints,
				Kubelet: userdata.Kubelet{
					MaxPods: 42, PodsPerCore: 3, ClusterDNS: n.Kubelet.ClusterDNS, KubeReserved: n.Kubelet.KubeReserved, SystemReserved: n.Kubelet.SystemReserved,
					EvictionHard: n.Kubelet.EvictionHard, EvictionSoft: n.Kubelet.EvictionSoft, EvictionSoftGracePeriod: map[string]string{"memory.available": "1m30s"},
					EvictionMaxPodGracePeriod: 60, ImageGCHighThresholdPercent: 85, ImageGCLowThresholdPercent: 80, CPUCFSQuota: new(true),
				},
			}
			switch want.Format = format[family.name]; want.Format {
			case "":
				want.Format = userdata.Windows
			case userdata.AL2023:
				want.CIDR = "10.100.0.0/16"
			case userdata.Bottlerocket: // It has no such setting, and sorts taints by key.
				want.PodsPerCore = 0
				want.Taints = []corev1.Taint{n.Taints[1], n.Taints[0], n.Taints[2]}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, text)
			}
		})
	}
}

// TestUnknownKubeletSettings checks that AL2023 receives the settings that Joist does not read as they are written, and
// that the class's settings do not change.
func TestUnknownKubeletSettings(t *testing.T) {
	n := defaultNode()
	const text = `{"kubeReserved":{"cpu":"100m"},"logging":{"format":"json","options":{"json":{"splitStream":true}}},"maxPods":"vcpus * 10","serializeImagePulls":false}`
	if err := json.Unmarshal([]byte(text), &n.KubeletConfiguration); err != nil {
		t.Fatal(err)
	}
	data, err := bootstrap.Write(karpenter.AMIFamilyAL2023, n)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Spec struct {
			Kubelet struct {
				Config karpenter.KubeletConfiguration `json:"config"`
			} `json:"kubelet"`
		} `json:"spec"`
	}
	start := strings.Index(data, "apiVersion:")
	end := strings.Index(data[start:], "\r\n--")
	if err := yaml.Unmarshal([]byte(data[start:start+end]), &config); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(config.Spec.Kubelet.Config)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(text, `"vcpus * 10"`, "17", 1); string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if before, _ := json.Marshal(n.KubeletConfiguration); string(before) != text {
		t.Errorf("the class's settings became %s", before)
	}
}

func TestInvalidUserData(t *testing.T) {
	unknown, noServices := defaultNode(), defaultNode()
	unknown.Cluster = catalog.ClusterFacts{Name: "demo"}
	noServices.Cluster.ServiceCIDR = ""
	with := func(custom string) bootstrap.Node {
		n := defaultNode()
		n.Custom = custom
		return n
	}
	for _, tt := range []struct {
		name, family string
		node         bootstrap.Node
		want         string
	}{
		{"unknown cluster of AL2", karpenter.AMIFamilyAL2, unknown, "eks:DescribeCluster"},
		{"unknown cluster of AL2023", karpenter.AMIFamilyAL2023, unknown, "eks:DescribeCluster"},
		{"unknown cluster of Bottlerocket", karpenter.AMIFamilyBottlerocket, unknown, "eks:DescribeCluster"},
		{"unknown cluster of Windows", karpenter.AMIFamilyWindows2022, unknown, "eks:DescribeCluster"},
		{"unknown services", karpenter.AMIFamilyAL2023, noServices, "service CIDR"},
		{"too large", karpenter.AMIFamilyAL2023, with("#!/bin/sh\n#" + strings.Repeat("x", bootstrap.Limit)), "16384"},
		{"too large and verbatim", karpenter.AMIFamilyCustom, with(strings.Repeat("x", bootstrap.Limit+1)), "16385"},
		{"broken multipart", karpenter.AMIFamilyAL2, with("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent"), "MIME"},
		{"not multipart", karpenter.AMIFamilyAL2023, with("Content-Type: text/plain\n\nhello"), "not multipart"},
		{"broken NodeConfig", karpenter.AMIFamilyAL2023, with("apiVersion: node.eks.aws/v1alpha1\nspec: [}\n"), "NodeConfig in part 1"},
		{"broken TOML", karpenter.AMIFamilyBottlerocket, with("[settings]\nkubernetes = \n"), "line 2"},
		{"settings that are not a table", karpenter.AMIFamilyBottlerocket, with("settings = 3"), "must be a table"},
		{"labels that are not a table", karpenter.AMIFamilyBottlerocket, with("[settings.kubernetes]\nnode-labels = ['a']"), "node-labels is"},
		{"batch script", karpenter.AMIFamilyWindows2019, with("<script>\necho\n</script>"), "batch script"},
		{"open tag", karpenter.AMIFamilyWindows2019, with("<powershell>\necho"), "unbalanced"},
		{"two scripts", karpenter.AMIFamilyWindows2019, with("<powershell></powershell><powershell></powershell>"), "more than one"},
		{"unknown family", "Ubuntu", defaultNode(), "amiFamily"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := bootstrap.Write(tt.family, tt.node)
			if !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" || !strings.Contains(err.Error()+fault.FindHint(err), tt.want) {
				t.Errorf("error = %v, want fault.Invalid with a hint that contains %q", err, tt.want)
			}
		})
	}
}

func TestCustomIsVerbatim(t *testing.T) {
	const mine = "anything at all"
	n := fullNode()
	n.Custom = mine
	if got, err := bootstrap.Write(karpenter.AMIFamilyCustom, n); err != nil || got != mine {
		t.Errorf("Write = %q, %v", got, err)
	}
}

// TestDNS checks that EKS' default address is used if the class sets none.
func TestDNS(t *testing.T) {
	for _, tt := range []struct {
		name, cidr, family string
		set, want          []string
		ipv6               bool
	}{
		{"from the service CIDR", "10.100.0.0/16", "", nil, []string{"10.100.0.10"}, false},
		{"IPv6", "fd30:1c53::/108", "ipv6", nil, []string{"fd30:1c53::a"}, true},
		{"IPv6 from the service CIDR", "fd30:1c53::/108", "", nil, []string{"fd30:1c53::a"}, true},
		{"from the class", "10.100.0.0/16", "", []string{"169.254.20.10"}, []string{"169.254.20.10"}, false},
		{"two from the class", "10.100.0.0/16", "", []string{"169.254.20.10", "10.100.0.10"}, []string{"169.254.20.10", "10.100.0.10"}, false},
		{"unknown", "", "", nil, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := defaultNode()
			n.Cluster.ServiceCIDR, n.Cluster.IPFamily, n.Kubelet = tt.cidr, tt.family, karpenter.ParsedKubelet{ClusterDNS: tt.set}
			for _, family := range []string{karpenter.AMIFamilyAL2, karpenter.AMIFamilyBottlerocket, karpenter.AMIFamilyWindows2022} {
				text, err := bootstrap.Write(family, n)
				if err != nil {
					t.Fatal(err)
				}
				joining, err := userdata.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, joining.ClusterDNS); diff != "" {
					t.Errorf("%s: %s\n%s", family, diff, text)
				}
				if family == karpenter.AMIFamilyAL2 && strings.Contains(text, "--ip-family ipv6") != tt.ipv6 {
					t.Errorf("IPv6 is wrong:\n%s", text)
				}
			}
		})
	}
}

// TestMount checks that directories are only listed for older Bottlerocket images.
func TestMount(t *testing.T) {
	for image, told := range map[string]bool{
		"": true, "mine": true, "bottlerocket-aws-k8s-1.33-x86_64-v1.45.9-431fe75a": true,
		"bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a": false, "bottlerocket-aws-k8s-1.33-aarch64-v2.0.1-431fe75a": false,
	} {
		n := fullNode()
		n.ImageName = image
		text, err := bootstrap.Write(karpenter.AMIFamilyBottlerocket, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text, "--dirs"); got != told {
			t.Errorf("image %q: directories are listed: %t, want %t\n%s", image, got, told, text)
		}
	}
}
