package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/memcloud"
)

// discovered is the spec that the quickstart uses (A108).
func discovered() karpenter.EC2NodeClassSpec {
	tags := map[string]string{"karpenter.sh/discovery": "demo"}
	return karpenter.EC2NodeClassSpec{
		SubnetSelectorTerms:        []karpenter.SubnetSelectorTerm{{Tags: tags}},
		SecurityGroupSelectorTerms: []karpenter.SecurityGroupSelectorTerm{{Tags: tags}},
		AMISelectorTerms:           []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}},
	}
}

func changed(t *testing.T, spec karpenter.EC2NodeClassSpec) event.NodeClassChanged {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return event.NodeClassChanged{Name: "default", UID: "nc-1", Generation: 3, Spec: text, Asked: start}
}

func (b *bench) resolved(t *testing.T, spec karpenter.EC2NodeClassSpec) event.NodeClassResolved {
	t.Helper()
	if err := b.ask(t, "watcher", changed(t, spec)); err != nil {
		t.Fatal(err)
	}
	return last[event.NodeClassResolved](t, b)
}

func TestA108ResolvesTheQuickstartClass(t *testing.T) {
	b := newBench(t)
	full := b.ec2.AddSubnet(cloud.Subnet{Zone: "us-west-2a", FreeIPs: 9000, Tags: map[string]string{"karpenter.sh/discovery": "demo"}})
	b.ec2.AddSubnet(cloud.Subnet{Zone: "us-west-2a", FreeIPs: 9000, Tags: map[string]string{"karpenter.sh/discovery": "another"}})
	got := b.resolved(t, discovered())
	if got.Name != "default" || got.UID != "nc-1" || got.Generation != 3 || !got.Asked.Equal(start) || len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	if len(got.Subnets) != 4 || got.Subnets[0].ID != full.ID || got.Subnets[1].ZoneID == "" {
		t.Fatalf("subnets %+v", got.Subnets)
	}
	if len(got.SecurityGroups) != 1 || got.SecurityGroups[0].ID != b.world.SecurityGroup.ID {
		t.Fatalf("groups %+v", got.SecurityGroups)
	}
	ids := map[string]bool{}
	for _, image := range got.Images {
		ids[image.ID] = true
		if image.ID == b.world.ImageARM64.ID && !strings.Contains(string(image.Requirements), `"values":["arm64"]`) {
			t.Errorf("requirements %s", image.Requirements)
		}
	}
	if want := map[string]bool{b.world.ImageAMD64.ID: true, b.world.ImageARM64.ID: true}; !cmp.Equal(want, ids) {
		t.Fatalf("images %v, want %v", ids, want)
	}
}

func TestAliasPinsAVersion(t *testing.T) {
	b := newBench(t)
	b.now = b.now.AddDate(0, 0, 14)
	b.ec2.Advance()
	newer, _ := b.ec2.AddAL2023()
	spec := discovered()
	for alias, want := range map[string]string{"al2023@v20261120": b.world.ImageAMD64.ID, "al2023@latest": newer.ID} {
		spec.AMISelectorTerms[0].Alias = alias
		found := false
		for _, image := range b.resolved(t, spec).Images {
			found = found || image.ID == want
		}
		if !found {
			t.Errorf("%s: did not find %s", alias, want)
		}
	}
}

func TestResolveProblems(t *testing.T) {
	type class = karpenter.EC2NodeClassSpec
	nothing := map[string]string{"team": "none"}
	for _, tt := range []struct {
		name      string
		spec      func(s *class)
		condition string
		reason    string
		says      string
	}{
		{"no subnets", func(s *class) { s.SubnetSelectorTerms[0].Tags = nothing }, "SubnetsReady", "SubnetsNotFound", "tag team=none"},
		{"no groups", func(s *class) { s.SecurityGroupSelectorTerms[0].Tags = nothing }, "SecurityGroupsReady", "SecurityGroupsNotFound", "tag team=none"},
		{"A110 an id as a name", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{Name: "ami-0123456789abcdef0"} },
			"AMIsReady", "AMINotFound", "use id: instead of name:"},
		{"unknown id", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{ID: "ami-0"} }, "AMIsReady", "AMINotFound", "id ami-0"},
		{"A109 AL2 after its end", func(s *class) { s.AMISelectorTerms[0].Alias = "al2@latest" }, "AMIsReady", "UnsupportedAlias", "al2023@latest"},
		{"no such version", func(s *class) { s.AMISelectorTerms[0].Alias = "al2023@v19700101" }, "AMIsReady", "AMINotFound", "al2023@latest"},
		{"no such family", func(s *class) { s.AMISelectorTerms[0].Alias = "beos@latest" }, "AMIsReady", "UnsupportedAlias", "al2023"},
		{"no such parameter", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{SSMParameter: "/mine"} }, "AMIsReady", "AMINotFound", "/mine does not exist"},
		{"a parameter of something else", func(s *class) { s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{SSMParameter: "/odd"} },
			"AMIsReady", "AMINotFound", "/odd does not hold an AMI id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.ec2.SetParameter("/odd", "42")
			spec := discovered()
			tt.spec(&spec)
			got := b.resolved(t, spec)
			if len(got.Problems) != 1 {
				t.Fatalf("problems %+v", got.Problems)
			}
			p := got.Problems[0]
			if p.Condition != tt.condition || p.Reason != tt.reason || !strings.Contains(p.Message, tt.says) {
				t.Fatalf("got %+v", p)
			}
		})
	}
}

func TestTermsFindImages(t *testing.T) {
	b := newBench(t)
	mine := b.ec2.AddImage(cloud.Image{Name: "mine-1", Arch: "amd64", Tags: map[string]string{"team": "a"}})
	b.ec2.SetParameter("/mine", mine.ID)
	for name, term := range map[string]karpenter.AMISelectorTerm{
		"id": {ID: mine.ID}, "name": {Name: "mine-*"}, "tags": {Tags: map[string]string{"team": "*"}},
		"parameter": {SSMParameter: "/mine"}, "owner": {Owner: "self", Name: "mine-?"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := discovered()
			spec.AMISelectorTerms = []karpenter.AMISelectorTerm{term}
			got := b.resolved(t, spec)
			if len(got.Images) != 1 || got.Images[0].ID != mine.ID || len(got.Problems) > 0 {
				t.Fatalf("got %+v", got)
			}
			const want = `[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]`
			if string(got.Images[0].Requirements) != want {
				t.Fatalf("requirements %s", got.Images[0].Requirements)
			}
		})
	}
}

// A lost right must not make a working class unready.
func TestDeniedIsAnErrorAndNoProblem(t *testing.T) {
	b := newBench(t)
	b.Network = denied{}
	if err := b.ask(t, "watcher", changed(t, discovered())); !fault.Is(err, fault.Denied) {
		t.Fatalf("got %v", err)
	}
	b.Network = b.ec2
	for _, action := range []memcloud.Action{memcloud.GetParameter, memcloud.DescribeImages} {
		b.ec2.Deny(action)
		if err := b.ask(t, "watcher", changed(t, discovered())); !fault.Is(err, fault.Denied) {
			t.Fatalf("%s: got %v", action, err)
		}
		b.ec2.Allow(action)
	}
	if len(b.said) > 0 {
		t.Fatalf("it said %d facts", len(b.said))
	}
}

func TestSpecThatIsNone(t *testing.T) {
	b := newBench(t)
	body := changed(t, discovered())
	body.Spec = json.RawMessage(`[]`)
	if err := b.ask(t, "watcher", body); !fault.Is(err, fault.Poison) {
		t.Fatalf("got %v", err)
	}
}
