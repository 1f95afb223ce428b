package image

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestListParameters(t *testing.T) {
	const eks = "/aws/service/eks/optimized-ami/"
	for _, tt := range []struct {
		alias, version string
		want           []string
	}{
		{"al2023@latest", "1.36", []string{
			eks + "1.36/amazon-linux-2023/x86_64/standard/recommended/image_id",
			eks + "1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
			eks + "1.36/amazon-linux-2023/x86_64/neuron/recommended/image_id",
			eks + "1.36/amazon-linux-2023/arm64/standard/recommended/image_id",
			eks + "1.36/amazon-linux-2023/arm64/nvidia/recommended/image_id",
		}},
		{"al2023@v20250101", "1.33", []string{
			eks + "1.33/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.33-v20250101/image_id",
			eks + "1.33/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.33-v20250101/image_id",
			eks + "1.33/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.33-v20250101/image_id",
			eks + "1.33/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.33-v20250101/image_id",
			eks + "1.33/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.33-v20250101/image_id",
		}},
		{"al2@v20240807", "1.30", []string{
			eks + "1.30/amazon-linux-2/amazon-eks-node-1.30-v20240807/image_id",
			eks + "1.30/amazon-linux-2-arm64/amazon-eks-arm64-node-1.30-v20240807/image_id",
			eks + "1.30/amazon-linux-2-gpu/amazon-eks-gpu-node-1.30-v20240807/image_id",
		}},
		{"bottlerocket@v1.20.4", "1.36", []string{
			"/aws/service/bottlerocket/aws-k8s-1.36/x86_64/1.20.4/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.36/arm64/1.20.4/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.36-nvidia/x86_64/1.20.4/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.36-nvidia/arm64/1.20.4/image_id",
		}},
		{"windows2022@latest", "1.36", []string{
			"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.36/image_id",
		}},
		{"windows2025@latest", "1.35", []string{
			"/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id",
		}},
		{"windows2025@latest", "1.34", nil},
		{"windows2022@v1", "1.36", nil},
		{"al2@latest", "1.33", nil},
	} {
		t.Run(tt.alias+" on "+tt.version, func(t *testing.T) {
			alias, err := karpenter.ParseAlias(tt.alias)
			if err != nil {
				t.Fatal(err)
			}
			parameters, err := ListParameters(alias, tt.version)
			var got []string
			for _, p := range parameters {
				if got = append(got, p.Name); len(p.Alternatives) == 0 {
					t.Errorf("%s has no requirements", p.Name)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
				t.Fatalf("error %v; parameters (-want +got):\n%s", err, diff)
			}
		})
	}
}

var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestRequirementsAsInStatus(t *testing.T) {
	got, err := ChooseImages([]cloud.Image{{ID: "ami-1", Arch: "arm64"}}, map[string][]Requirements{"ami-1": {requireNoAccelerator()}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"key":"kubernetes.io/arch","operator":"In","values":["arm64"]},` +
		`{"key":"karpenter.k8s.aws/instance-gpu-count","operator":"DoesNotExist"},` +
		`{"key":"karpenter.k8s.aws/instance-accelerator-count","operator":"DoesNotExist"}]`
	if len(got) != 1 || string(got[0].Requirements) != want {
		t.Fatalf("got %+v", got)
	}
}

func TestChooseImages(t *testing.T) {
	for _, tt := range []struct {
		name   string
		images []cloud.Image
		known  map[string][]Requirements
		want   []string
	}{
		{"newer", []cloud.Image{{ID: "old", Arch: "amd64", Created: day}, {ID: "new", Arch: "amd64", Created: day.Add(1)}}, nil, []string{"new"}},
		{"not deprecated before newer", []cloud.Image{
			{ID: "old", Arch: "amd64", Created: day}, {ID: "new", Arch: "amd64", Created: day.Add(1), Deprecated: true},
		}, nil, []string{"old"}},
		{"deprecated if it is the only one", []cloud.Image{{ID: "old", Arch: "amd64", Deprecated: true}}, nil, []string{"old"}},
		{"one for each architecture", []cloud.Image{{ID: "a", Arch: "amd64"}, {ID: "b", Arch: "arm64"}, {ID: "c", Arch: "i386"}}, nil, []string{"a", "b"}},
		{"one image for two kinds of accelerators", []cloud.Image{{ID: "gpu", Arch: "amd64"}},
			map[string][]Requirements{"gpu": {requireNeuron(), requireNVIDIA()}}, []string{"gpu", "gpu"}},
		{"variants do not compete", []cloud.Image{{ID: "a", Arch: "amd64", Created: day}, {ID: "b", Arch: "amd64", Created: day.Add(1)}},
			map[string][]Requirements{"a": {requireNoAccelerator()}, "b": {requireNVIDIA()}}, []string{"b", "a"}},
		{"nothing", nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := ChooseImages(tt.images, tt.known)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, image := range found {
				got = append(got, image.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChooseImagesIgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		images := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) cloud.Image {
			return cloud.Image{
				ID: rapid.StringMatching("ami-[0-9a-f]{3}").Draw(t, "id"), Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
				Arch:       rapid.SampledFrom([]string{"amd64", "arm64"}).Draw(t, "arch"),
				Created:    day.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))),
				Deprecated: rapid.Bool().Draw(t, "deprecated"),
			}
		}), 0, 8, func(i cloud.Image) string { return i.ID }).Draw(t, "images")
		first, err := ChooseImages(images, nil)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := rapid.Permutation(slices.Clone(images)).Draw(t, "shuffled")
		second, err := ChooseImages(shuffled, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the result depends on the order of the input:\n%s", diff)
		}
	})
}
