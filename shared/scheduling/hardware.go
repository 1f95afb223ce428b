package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// candidate is one instance type as one pool may use it.
type candidate struct {
	name string
	// labels are those that the type alone determines.
	labels map[string]string
	// capacity counts against limits; room is what is left for pods after the
	// system's and the daemons' part.
	capacity, room amounts
	// offers are the ways to buy it that are not known to be sold out.
	offers []Option
	exotic bool
}

// openLabels are well-known, but not a matter of the instance type: the pool
// fixes them, or they are open until the launch.
var openLabels = []string{
	corev1.LabelTopologyZone, karpenter.LabelTopologyZoneID, karpenter.CapacityTypeLabelKey,
	karpenter.NodePoolLabelKey, karpenter.LabelEC2NodeClass, corev1.LabelTopologyRegion,
}

// allows reports whether a node of the type could satisfy the requirements, as
// far as the type decides it.
func (r Requirements) allows(typeLabels map[string]string) bool {
	for key, values := range r {
		if value, ok := typeLabels[key]; ok {
			if !values.Has(value) {
				return false
			}
			continue
		}
		if karpenter.WellKnownLabel(key) && !values.HasAbsent() && !slices.Contains(openLabels, key) {
			return false
		}
	}
	return true
}

// buys reports whether the requirements allow the offering.
func (r Requirements) buys(o Option) bool {
	for _, key := range offeringKeys {
		if values, ok := r[key]; ok && !values.Has(o.label(key)) {
			return false
		}
	}
	return true
}

var offeringKeys = []string{corev1.LabelTopologyZone, karpenter.LabelTopologyZoneID, karpenter.CapacityTypeLabelKey}

// label is what the offering decides of a node's labels.
func (o Option) label(key string) string {
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

// options are the ways to buy the type under the requirements.
func (c *candidate) options(r Requirements) []Option {
	var out []Option
	for _, o := range c.offers {
		if r.buys(o) {
			out = append(out, o)
		}
	}
	return out
}

// sold reports whether there is any.
func (c *candidate) sold(r Requirements) bool { return slices.ContainsFunc(c.offers, r.buys) }

func unavailable(o Option, snapshot Snapshot) bool {
	either := func(field, value string) bool { return field == "" || field == value }
	return slices.ContainsFunc(snapshot.Unavailable, func(u Unavailable) bool {
		return snapshot.Taken.Before(u.Until) && either(u.InstanceType, o.InstanceType) &&
			either(u.Zone, o.Zone) && either(u.CapacityType, o.CapacityType)
	})
}

// exotic types are dear for what ordinary pods use of them (B188).
func exotic(t catalog.InstanceType) bool {
	return t.BareMetal || len(t.GPUs) > 0 || len(t.Accelerators) > 0
}
