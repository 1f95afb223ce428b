package image

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Parameter is an SSM parameter with the id of an image, and the requirements of the
// image in addition to its architecture.
type Parameter struct {
	Name string
	// Alternatives are sets of requirements. The status has one entry for each.
	Alternatives []Requirements
}

// ListParameters returns the SSM parameters with the images of an alias for a Kubernetes
// version such as "1.36". It fails if AWS publishes no images for the alias and version.
func ListParameters(alias karpenter.Alias, version string) ([]Parameter, error) {
	switch alias.Family {
	case karpenter.AMIFamilyAL2023:
		return al2023Parameters(alias, version), nil
	case karpenter.AMIFamilyBottlerocket:
		return bottlerocketParameters(alias, version), nil
	case karpenter.AMIFamilyAL2:
		if minorVersion(version) > lastAL2 {
			return nil, fmt.Errorf("alias %s: AWS publishes no AL2 image after Kubernetes 1.%d, and the cluster runs %s: write al2023@latest",
				alias, lastAL2, version)
		}
		return al2Parameters(alias, version), nil
	default:
		return windowsParameters(alias, version)
	}
}

const (
	// lastAL2 is the last minor version with AL2 images.
	lastAL2 = 32
	// firstWindows2025 is the first minor version with Windows 2025 images.
	firstWindows2025 = 35
)

func al2023Parameters(alias karpenter.Alias, version string) []Parameter {
	var out []Parameter
	for _, x := range []struct {
		machine, variant string
		fits             Requirements
	}{
		{"x86_64", "standard", requireNoAccelerator()}, {"x86_64", "nvidia", requireNVIDIA()}, {"x86_64", "neuron", requireNeuron()},
		{"arm64", "standard", requireNoAccelerator()}, {"arm64", "nvidia", requireNVIDIA()},
	} {
		release := releasePart(alias, fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", x.machine, x.variant, version, alias.Version))
		out = append(out, Parameter{
			Name:         fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", version, x.machine, x.variant, release),
			Alternatives: []Requirements{x.fits},
		})
	}
	return out
}

// al2Parameters returns the parameters of AL2, which has one image for both kinds of accelerators.
func al2Parameters(alias karpenter.Alias, version string) []Parameter {
	var out []Parameter
	for _, x := range []struct {
		path, name string
		fits       []Requirements
	}{
		{"amazon-linux-2", "amazon-eks-node", []Requirements{requireNoAccelerator()}},
		{"amazon-linux-2-arm64", "amazon-eks-arm64-node", []Requirements{requireNoAccelerator()}},
		{"amazon-linux-2-gpu", "amazon-eks-gpu-node", []Requirements{requireNeuron(), requireNVIDIA()}},
	} {
		release := releasePart(alias, fmt.Sprintf("%s-%s-%s", x.name, version, alias.Version))
		out = append(out, Parameter{
			Name:         fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", version, x.path, release),
			Alternatives: x.fits,
		})
	}
	return out
}

// bottlerocketParameters returns the parameters of Bottlerocket. They have the release without its
// v.
func bottlerocketParameters(alias karpenter.Alias, version string) []Parameter {
	release := strings.TrimLeft(alias.Version, "v")
	var out []Parameter
	for _, x := range []struct {
		flavour, machine string
		fits             []Requirements
	}{
		{"", "x86_64", []Requirements{requireNoAccelerator(), requireNeuron()}}, {"", "arm64", []Requirements{requireNoAccelerator()}},
		{"-nvidia", "x86_64", []Requirements{requireNVIDIA()}}, {"-nvidia", "arm64", []Requirements{requireNVIDIA()}},
	} {
		out = append(out, Parameter{
			Name:         fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", version, x.flavour, x.machine, release),
			Alternatives: x.fits,
		})
	}
	return out
}

// windowsParameters returns the parameter of the latest image, the only one that AWS publishes.
func windowsParameters(alias karpenter.Alias, version string) ([]Parameter, error) {
	builds := map[string]string{
		karpenter.AMIFamilyWindows2019: karpenter.Windows2019Build,
		karpenter.AMIFamilyWindows2022: karpenter.Windows2022Build,
		karpenter.AMIFamilyWindows2025: karpenter.Windows2025Build,
	}
	build, ok := builds[alias.Family]
	switch {
	case !ok:
		return nil, fmt.Errorf("alias %s: AWS publishes no images for family %s", alias, alias.Family)
	case alias.Version != karpenter.AliasVersionLatest:
		return nil, fmt.Errorf("alias %s: AWS publishes the latest version of Windows only: write %s@latest", alias, strings.ToLower(alias.Family))
	case alias.Family == karpenter.AMIFamilyWindows2025 && minorVersion(version) < firstWindows2025:
		return nil, fmt.Errorf("alias %s: needs Kubernetes 1.%d, and the cluster runs %s: write windows2022@latest", alias, firstWindows2025, version)
	}
	year := strings.TrimPrefix(alias.Family, "Windows")
	return []Parameter{{
		Name:         fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id", year, version),
		Alternatives: []Requirements{{requireValue(corev1.LabelOSStable, "windows"), requireValue(corev1.LabelWindowsBuild, build)}},
	}}, nil
}

// releasePart returns the part of the path that names the release.
func releasePart(alias karpenter.Alias, name string) string {
	if alias.Version == karpenter.AliasVersionLatest {
		return "recommended"
	}
	return name
}

// minorVersion returns the minor of a Kubernetes version, or 0 if it is invalid.
func minorVersion(version string) int {
	_, rest, _ := strings.Cut(version, ".")
	digits, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
