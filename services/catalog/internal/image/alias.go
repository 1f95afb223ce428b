package image

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Parameter is an SSM parameter under which AWS publishes an image's id, and
// which types the image runs on beside its architecture.
type Parameter struct {
	Name string
	// Fits are alternatives: the image becomes one entry for each.
	Fits []Requirements
}

// Parameters lists where AWS publishes the images of an alias for a Kubernetes
// version such as "1.36". An error says why the alias cannot be served.
func Parameters(alias karpenter.Alias, version string) ([]Parameter, error) {
	switch alias.Family {
	case karpenter.AMIFamilyAL2023:
		return al2023(alias, version), nil
	case karpenter.AMIFamilyBottlerocket:
		return bottlerocket(alias, version), nil
	case karpenter.AMIFamilyAL2:
		if minor(version) > lastAL2 {
			return nil, fmt.Errorf("alias %s: AWS publishes no AL2 image after Kubernetes 1.%d, and the cluster runs %s: write al2023@latest",
				alias, lastAL2, version)
		}
		return al2(alias, version), nil
	default:
		return windows(alias, version)
	}
}

const (
	// lastAL2 is the last minor version with AL2 images.
	lastAL2 = 32
	// firstWindows2025 is the first minor version with Windows 2025 images.
	firstWindows2025 = 35
)

func al2023(alias karpenter.Alias, version string) []Parameter {
	var out []Parameter
	for _, x := range []struct {
		machine, variant string
		fits             Requirements
	}{
		{"x86_64", "standard", standard()}, {"x86_64", "nvidia", nvidia()}, {"x86_64", "neuron", neuron()},
		{"arm64", "standard", standard()}, {"arm64", "nvidia", nvidia()},
	} {
		release := pinned(alias, fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", x.machine, x.variant, version, alias.Version))
		out = append(out, Parameter{
			Name: fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", version, x.machine, x.variant, release),
			Fits: []Requirements{x.fits},
		})
	}
	return out
}

// al2 has one image for both kinds of accelerators.
func al2(alias karpenter.Alias, version string) []Parameter {
	var out []Parameter
	for _, x := range []struct {
		path, name string
		fits       []Requirements
	}{
		{"amazon-linux-2", "amazon-eks-node", []Requirements{standard()}},
		{"amazon-linux-2-arm64", "amazon-eks-arm64-node", []Requirements{standard()}},
		{"amazon-linux-2-gpu", "amazon-eks-gpu-node", []Requirements{neuron(), nvidia()}},
	} {
		release := pinned(alias, fmt.Sprintf("%s-%s-%s", x.name, version, alias.Version))
		out = append(out, Parameter{
			Name: fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", version, x.path, release),
			Fits: x.fits,
		})
	}
	return out
}

// bottlerocket's parameters have no v before the version, though its releases do.
func bottlerocket(alias karpenter.Alias, version string) []Parameter {
	release := strings.TrimLeft(alias.Version, "v")
	var out []Parameter
	for _, x := range []struct {
		flavour, machine string
		fits             []Requirements
	}{
		{"", "x86_64", []Requirements{standard(), neuron()}}, {"", "arm64", []Requirements{standard()}},
		{"-nvidia", "x86_64", []Requirements{nvidia()}}, {"-nvidia", "arm64", []Requirements{nvidia()}},
	} {
		out = append(out, Parameter{
			Name: fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", version, x.flavour, x.machine, release),
			Fits: x.fits,
		})
	}
	return out
}

// windows publishes its latest image alone.
func windows(alias karpenter.Alias, version string) ([]Parameter, error) {
	builds := map[string]string{
		karpenter.AMIFamilyWindows2019: karpenter.Windows2019Build,
		karpenter.AMIFamilyWindows2022: karpenter.Windows2022Build,
		karpenter.AMIFamilyWindows2025: karpenter.Windows2025Build,
	}
	build, known := builds[alias.Family]
	switch {
	case !known:
		return nil, fmt.Errorf("alias %s: no images are published for family %s", alias, alias.Family)
	case alias.Version != karpenter.AliasVersionLatest:
		return nil, fmt.Errorf("alias %s: Windows has no other version than latest: write %s@latest", alias, strings.ToLower(alias.Family))
	case alias.Family == karpenter.AMIFamilyWindows2025 && minor(version) < firstWindows2025:
		return nil, fmt.Errorf("alias %s: it needs Kubernetes 1.%d, and the cluster runs %s: write windows2022@latest", alias, firstWindows2025, version)
	}
	year := strings.TrimPrefix(alias.Family, "Windows")
	return []Parameter{{
		Name: fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id", year, version),
		Fits: []Requirements{{in(corev1.LabelOSStable, "windows"), in(corev1.LabelWindowsBuild, build)}},
	}}, nil
}

// pinned is the part of a path that says which release.
func pinned(alias karpenter.Alias, name string) string {
	if alias.Version == karpenter.AliasVersionLatest {
		return "recommended"
	}
	return name
}

// minor is the minor of a Kubernetes version, or 0.
func minor(version string) int {
	_, rest, _ := strings.Cut(version, ".")
	digits, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
