package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func readSpec(t *testing.T, name string) karpenter.EC2NodeClassSpec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var class karpenter.EC2NodeClass
	if err := yaml.UnmarshalStrict(text, &class); err != nil {
		t.Fatal(err)
	}
	return class.Spec
}

// The node classes of tutorials resolve in an account with the tutorials' resources.
func TestResolveTutorialClasses(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		version    string
		edit       func(*karpenter.EC2NodeClassSpec)
		images     []string
		problems   []string
	}{
		{"the quickstart", "quickstart.yaml", "1.36", nil, []string{"al2023-x86_64", "al2023-arm64"}, nil},
		{"an old node template", "node-template.yaml", "1.24", nil, []string{"al2-x86_64", "al2-arm64", "al2-gpu", "al2-gpu"}, nil},
		{"an old node template on a new cluster", "node-template.yaml", "1.33", nil, nil, []string{"AMIsReady/UnsupportedAlias"}},
		{"the reference as it is", "reference.yaml", "1.30", nil, nil, []string{"AMIsReady/AMINotFound"}},
		{"the reference with an image id", "reference.yaml", "1.30", func(s *karpenter.EC2NodeClassSpec) {
			s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{ID: "ami-0123456789abcdef0"}
		}, []string{"mine"}, nil},
		{"the reference with the tags that it shows as set", "reference.yaml", "1.30", func(s *karpenter.EC2NodeClassSpec) {
			s.AMISelectorTerms[0] = karpenter.AMISelectorTerm{ID: "ami-0123456789abcdef0"}
			s.Tags["aws:ec2:fleet-id"], s.Tags["karpenter.sh/nodepool"] = "fleet-1", "foo-nodepool"
		}, []string{"mine"}, []string{"ValidationSucceeded/TagValidationFailed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			h.addTutorialResources(tt.version)
			spec := readSpec(t, tt.file)
			if tt.edit != nil {
				tt.edit(&spec)
			}
			got := h.resolveSpec(t, spec)
			var images, problems []string
			for _, i := range got.Images {
				images = append(images, i.Name)
			}
			slices.Sort(images)
			slices.Sort(tt.images)
			for _, p := range got.Problems {
				problems = append(problems, p.Condition+"/"+p.Reason)
			}
			if diff := cmp.Diff(tt.images, images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%+v", diff, got.Problems)
			}
			if len(got.Subnets) == 0 || len(got.SecurityGroups) != 1 || got.Hash == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// addTutorialResources adds the tutorials' resources and a cluster of the version.
func (h *harness) addTutorialResources(version string) {
	info := h.account.Cluster
	info.Version = version
	h.ec2.AddCluster(info)
	h.ec2.AddSubnet(cloud.Subnet{Zone: "us-west-2a", FreeIPs: 100, Tags: map[string]string{"Name": "foo-private-subnet"}})
	h.ec2.AddSecurityGroup(cloud.SecurityGroup{Name: "sg", Tags: map[string]string{"Name": "foo-private-sg"}})
	h.ec2.AddImage(cloud.Image{ID: "ami-0123456789abcdef0", Name: "mine", Arch: "amd64"})
	eks := "/aws/service/eks/optimized-ami/" + version + "/"
	for path, i := range map[string]cloud.Image{
		"amazon-linux-2/recommended/image_id":                    {Name: "al2-x86_64", Arch: "amd64"},
		"amazon-linux-2-arm64/recommended/image_id":              {Name: "al2-arm64", Arch: "arm64"},
		"amazon-linux-2-gpu/recommended/image_id":                {Name: "al2-gpu", Arch: "amd64"},
		"amazon-linux-2023/x86_64/standard/recommended/image_id": {Name: "al2023-x86_64", Arch: "amd64"},
		"amazon-linux-2023/arm64/standard/recommended/image_id":  {Name: "al2023-arm64", Arch: "arm64"},
	} {
		i.Owner = "amazon"
		h.ec2.SetParameter(eks+path, h.ec2.AddImage(i).ID)
	}
}

// The resolved images have the requirements that the reference shows in the status.
func TestResolvedImageRequirements(t *testing.T) {
	h := newHarness(t)
	h.addTutorialResources("1.36")
	got := h.resolveSpec(t, readSpec(t, "quickstart.yaml"))
	i := slices.IndexFunc(got.Images, func(i event.Image) bool { return i.Name == "al2023-arm64" })
	if i < 0 {
		t.Fatalf("images %+v", got.Images)
	}
	text := string(got.Images[i].Requirements)
	for _, want := range []string{`"kubernetes.io/arch"`, `"arm64"`, `"karpenter.k8s.aws/instance-gpu-count"`, `"karpenter.k8s.aws/instance-accelerator-count"`, `"DoesNotExist"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the requirements lack %s: %s", want, text)
		}
	}
}
