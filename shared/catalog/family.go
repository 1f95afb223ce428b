package catalog

import "github.com/joist-autoscaler/joist/shared/karpenter"

// family is how an image family changes what pods may use.
type family struct {
	// ephemeralDevice is where pods' storage lives; empty when only the image knows.
	ephemeralDevice string
	// ephemeralGi is the size of that device when the class does not set it.
	ephemeralGi int64
	// eniPods families run as many pods as there are addresses; the others run podsDefault.
	eniPods bool
	// eniReserve families size the kubelet's reserve by the addresses, even where maxPods says otherwise.
	eniReserve bool
	// podsPerCore families honour that setting. Bottlerocket's settings cannot express it.
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
