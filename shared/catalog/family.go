package catalog

import "github.com/joist-autoscaler/joist/shared/karpenter"

// family is how an image family affects the resources that pods can use.
type family struct {
	// ephemeralDevice is the device of the pods' storage; empty if it depends on the image.
	ephemeralDevice string
	// ephemeralGi is the size of that device if the class does not set it.
	ephemeralGi int64
	// eniPods families limit pods by the number of addresses; the others use podsDefault.
	eniPods bool
	// eniReserve families compute the kubelet's reserve from the number of addresses, even if maxPods is set.
	eniReserve bool
	// podsPerCore families support that setting. Bottlerocket's settings do not.
	podsPerCore bool
	windows     bool
}

var (
	amazonLinux = family{ephemeralDevice: "/dev/xvda", ephemeralGi: 20, eniPods: true, eniReserve: true, podsPerCore: true}
	windows     = family{ephemeralDevice: "/dev/sda1", ephemeralGi: 50, podsPerCore: true, windows: true}
	custom      = family{ephemeralGi: 20, eniPods: true, eniReserve: true, podsPerCore: true}

	families = map[string]family{
		karpenter.AMIFamilyAL2:          amazonLinux,
		karpenter.AMIFamilyAL2023:       amazonLinux,
		karpenter.AMIFamilyBottlerocket: {ephemeralDevice: "/dev/xvdb", ephemeralGi: 20, eniPods: true},
		karpenter.AMIFamilyWindows2019:  windows,
		karpenter.AMIFamilyWindows2022:  windows,
		karpenter.AMIFamilyWindows2025:  windows,
	}
)

func familyOf(name string) family {
	if f, ok := families[name]; ok {
		return f
	}
	return custom
}
