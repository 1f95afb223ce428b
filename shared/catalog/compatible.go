package catalog

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// IsCompatible reports whether an instance of type t can be launched with the class. The family is that of the
// class's images. Karpenter: pkg/providers/instancetype/compatibility/compatibility.go.
func IsCompatible(t InstanceType, class *karpenter.EC2NodeClass, family string) bool {
	switch {
	case family == karpenter.AMIFamilyAL2023 && strings.HasPrefix(t.Name, "a1."):
		return false // AL2023 requires CPU features that Graviton1 lacks.
	case class.Spec.ConnectionTracking != nil && t.Hypervisor != "nitro":
		return false
	case class.EnclavesEnabled() && !t.Enclaves:
		return false
	case class.NestedVirtualizationEnabled() && !t.NestedVirtualization:
		return false
	}
	return hasInterfaces(t.Network, class.Spec.NetworkInterfaces)
}

// hasInterfaces reports whether the network cards support the interfaces.
func hasInterfaces(n Network, interfaces []karpenter.NetworkInterface) bool {
	efas := int64(0)
	for _, i := range interfaces {
		if int64(i.NetworkCardIndex) >= max(n.Cards, 1) {
			return false
		}
		if i.NetworkCardIndex == 0 && int64(i.DeviceIndex) >= n.ENIs { // The catalogue has the limit of the default card only.
			return false
		}
		if i.InterfaceType == karpenter.InterfaceTypeEFAOnly {
			efas++
		}
	}
	return efas <= n.EFAs
}
