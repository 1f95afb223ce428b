package catalog

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podsDefault is the kubelet's own limit, for families that do not count addresses.
const podsDefault = 110

// MaxPods returns the maximum number of pods on a node.
func MaxPods(t InstanceType, cfg NodeConfig) int64 {
	kubelet, f := cfg.Kubelet, familyOf(cfg.AMIFamily)
	count := int64(podsDefault)
	switch {
	case kubelet.MaxPods != nil && kubelet.MaxPods.Type == intstr.Int:
		count = int64(kubelet.MaxPods.IntVal)
	case f.eniPods:
		count = addressablePods(t, cfg, cfg.ReservedENIs)
	}
	if perCore := kubelet.PodsPerCore; perCore != nil && *perCore > 0 && f.podsPerCore {
		count = min(count, int64(*perCore)*t.VCPU)
	}
	return count
}

// addressablePods returns how many pods can have an address: each interface uses its first address itself, and two
// pods of every node use the host network. EFA-only interfaces count as interfaces without addresses.
func addressablePods(t InstanceType, cfg NodeConfig, reservedENIs int64) int64 {
	interfaces := t.Network.ENIs - reservedENIs
	for _, n := range cfg.NetworkInterfaces {
		if n.NetworkCardIndex == 0 && n.InterfaceType == karpenter.InterfaceTypeEFAOnly {
			interfaces--
		}
	}
	if interfaces <= 0 {
		return 0
	}
	return interfaces*(t.Network.IPv4PerENI-1) + 2
}
