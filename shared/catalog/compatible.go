package catalog

import (
	"slices"
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

// AcceptsPlacement reports whether an instance of type t can be launched into a placement group with the strategy; "" if
// it is not known. Burstable types are the ones that AWS excludes from cluster placement groups
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html); that rule serves types of an
// embedded catalogue. Karpenter: pkg/providers/instancetype/compatibility/compatibility.go.
func (t InstanceType) AcceptsPlacement(strategy string) bool {
	if strategy == "" {
		return true
	}
	if len(t.PlacementStrategies) == 0 {
		return strategy != ClusterStrategy || !t.Burstable
	}
	return slices.Contains(t.PlacementStrategies, strategy)
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
