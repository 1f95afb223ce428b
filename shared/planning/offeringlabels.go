package planning

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// LabelsNotFromType are the well-known labels that the instance type does not set: the NodePool sets
// them, or they are open until the launch.
var LabelsNotFromType = []string{
	corev1.LabelTopologyZone, karpenter.LabelTopologyZoneID, karpenter.CapacityTypeLabelKey,
	karpenter.NodePoolLabelKey, karpenter.LabelEC2NodeClass, corev1.LabelTopologyRegion, karpenter.LabelInstanceTenancy,
	karpenter.LabelPlacementGroupPartition,
}

// AllowsType reports whether a node of the type could meet the requirements on labels that the type
// sets.
func (r Requirements) AllowsType(typeLabels map[string]string) bool {
	for key, values := range r {
		if value, ok := typeLabels[key]; ok {
			if !values.Has(value) {
				return false
			}
			continue
		}
		if karpenter.IsWellKnownLabel(key) && !values.AllowsAbsent() && (values.IsEmpty() || !slices.Contains(LabelsNotFromType, key)) {
			return false
		}
	}
	return true
}

// OfferingLabels are the labels that the offering sets, not the type.
var OfferingLabels = []string{corev1.LabelTopologyZone, karpenter.LabelTopologyZoneID, karpenter.CapacityTypeLabelKey}

// AllowsOffering reports whether the requirements allow the offering.
func (r Requirements) AllowsOffering(o PricedOffering) bool {
	for _, key := range OfferingLabels {
		if values, ok := r[key]; ok && !values.Has(o.Label(key)) {
			return false
		}
	}
	return true
}

// Label returns the offering's value of a label: the zone, its id or the capacity type; empty for
// other labels.
func (o PricedOffering) Label(key string) string {
	switch key {
	case corev1.LabelTopologyZone:
		return o.Zone
	case karpenter.LabelTopologyZoneID:
		return o.ZoneID
	case karpenter.CapacityTypeLabelKey:
		return o.CapacityType
	default:
		return ""
	}
}
