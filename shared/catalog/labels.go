package catalog

import (
	"maps"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Labels returns the well-known labels of a node of type t with offering o. Labels without a value are omitted: bare
// metal has no hypervisor, and most types no GPU. The operating system is Linux; FamilyLabels overrides it. The
// tenancy is default, because catalogue prices are for default tenancy.
func Labels(t InstanceType, o Offering, region string) map[string]string {
	labels := TypeLabels(t)
	maps.Copy(labels, map[string]string{
		corev1.LabelTopologyRegion:     region,
		corev1.LabelTopologyZone:       o.Zone,
		karpenter.LabelTopologyZoneID:  o.ZoneID,
		karpenter.CapacityTypeLabelKey: o.CapacityType,
	})
	dropEmpty(labels)
	return labels
}

// TypeLabels returns the part of Labels that does not depend on the offering, to compute it once per type.
func TypeLabels(t InstanceType) map[string]string {
	name := ParseName(t.Name)
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: t.Name,
		corev1.LabelArchStable:         t.Arch,
		corev1.LabelOSStable:           Linux,

		karpenter.LabelInstanceTenancy:                      karpenter.TenancyDefault,
		karpenter.LabelInstanceCategory:                     name.Category,
		karpenter.LabelInstanceFamily:                       name.Family,
		karpenter.LabelInstanceGeneration:                   name.Generation,
		karpenter.LabelInstanceSize:                         name.Size,
		karpenter.LabelInstanceCapabilityFlex:               strconv.FormatBool(name.Flex),
		karpenter.LabelInstanceCPU:                          strconv.FormatInt(t.VCPU, 10),
		karpenter.LabelInstanceCPUManufacturer:              kebabCase(t.CPUManufacturer),
		karpenter.LabelInstanceCPUSustainedClockSpeedMHz:    formatPositive(t.ClockMHz),
		karpenter.LabelInstanceMemory:                       strconv.FormatInt(t.MemoryMiB, 10),
		karpenter.LabelInstanceEBSBandwidth:                 formatPositive(t.EBSMbps),
		karpenter.LabelInstanceNetworkBandwidth:             formatPositive(t.Network.Mbps),
		karpenter.LabelInstanceHypervisor:                   t.Hypervisor,
		karpenter.LabelInstanceEncryptionInTransitSupported: strconv.FormatBool(t.EncryptionInTransit),
	}
	if t.Storage.NVMe {
		labels[karpenter.LabelInstanceLocalNVME] = formatPositive(t.Storage.TotalGB)
	}
	// One label cannot describe two models of GPU, so such a type has none.
	if len(t.GPUs) == 1 {
		maps.Copy(labels, gpuLabels(t.GPUs[0]))
	}
	if len(t.Accelerators) == 1 {
		maps.Copy(labels, acceleratorLabels(t.Accelerators[0]))
	}
	dropEmpty(labels)
	return labels
}

func gpuLabels(g GPU) map[string]string {
	return map[string]string{
		karpenter.LabelInstanceGPUName:         kebabCase(g.Name),
		karpenter.LabelInstanceGPUManufacturer: kebabCase(g.Manufacturer),
		karpenter.LabelInstanceGPUCount:        strconv.FormatInt(g.Count, 10),
		karpenter.LabelInstanceGPUMemory:       strconv.FormatInt(g.MemoryMiB, 10),
	}
}

func acceleratorLabels(a Accelerator) map[string]string {
	return map[string]string{
		karpenter.LabelInstanceAcceleratorName:         kebabCase(a.Name),
		karpenter.LabelInstanceAcceleratorManufacturer: kebabCase(a.Manufacturer),
		karpenter.LabelInstanceAcceleratorCount:        strconv.FormatInt(a.Count, 10),
	}
}

// windowsBuilds are the values of node.kubernetes.io/windows-build, by image family.
var windowsBuilds = map[string]string{
	karpenter.AMIFamilyWindows2019: karpenter.Windows2019Build,
	karpenter.AMIFamilyWindows2022: karpenter.Windows2022Build,
	karpenter.AMIFamilyWindows2025: karpenter.Windows2025Build,
}

// FamilyLabels returns the labels that depend only on the image family.
func FamilyLabels(amiFamily string) map[string]string {
	if build, ok := windowsBuilds[amiFamily]; ok {
		return map[string]string{corev1.LabelOSStable: Windows, corev1.LabelWindowsBuild: build}
	}
	return map[string]string{corev1.LabelOSStable: Linux}
}

// Name is the parts of an instance type's name.
type Name struct {
	Family, Size string
	// Category and Generation are empty if the name does not follow the scheme, as in mac-m4.metal.
	Category, Generation string
	// Flex types do not sustain their full speed all the time.
	Flex bool
}

// nameScheme matches the family, optionally a size in terabytes, and the generation: c7gn, u-6tb1, u7i-12tb, mac2-m2pro.
var nameScheme = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+)`)

// ParseName splits an instance type's name. A name without exactly one dot has neither family nor size.
func ParseName(name string) Name {
	family, size, dotted := strings.Cut(name, ".")
	n := Name{Flex: strings.Contains(family, "-flex")}
	if dotted && !strings.Contains(size, ".") {
		n.Family, n.Size = family, size
	}
	if match := nameScheme.FindStringSubmatch(family); dotted && match != nil {
		n.Category, n.Generation = match[1], match[2]
	}
	return n
}

// kebabCase converts "Radeon Pro V520" to radeon-pro-v520, which is a valid label value.
func kebabCase(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "-")) }

// formatPositive returns "" for 0, which means unknown.
func formatPositive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func dropEmpty(labels map[string]string) {
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
}
