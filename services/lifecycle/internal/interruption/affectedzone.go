package interruption

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// AffectedZone returns the zone with that ID if the pool's nodes can be in it: its class has a
// subnet there, and its requirements allow it. A pool without zone requirements is affected in each
// zone of its class.
func AffectedZone(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, zoneID string) (zone string, affected bool) {
	i := slices.IndexFunc(class.Status.Subnets, func(s karpenter.Subnet) bool { return s.ZoneID == zoneID })
	if i < 0 {
		return "", false
	}
	zone = class.Status.Subnets[i].Zone
	requirements := planning.NewNodeClaimRequirements(pool.Spec.Template.Spec.Requirements)
	return zone, allowsValue(requirements, corev1.LabelTopologyZone, zone) && allowsValue(requirements, karpenter.LabelTopologyZoneID, zoneID)
}

func allowsValue(r planning.Requirements, key, value string) bool {
	values, named := r[key]
	return !named || values.Has(value)
}
