package launchspec

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// overlaid reports whether a NodeOverlay set any price. EC2 does not know such prices, so it needs
// explicit priorities.
func (c choice) overlaid() bool {
	return slices.ContainsFunc(c.offers, func(o offer) bool { return o.PricedByOverlay })
}

// strategy returns the allocation strategy: spot by price and capacity, others by lowest price.
// Reservations in their own market have none.
func (c choice) strategy() string {
	switch {
	case c.capacityType == cloud.Reserved && c.target() != "":
		return ""
	case c.capacityType == cloud.Spot && c.overlaid():
		return "capacity-optimized-prioritized"
	case c.capacityType == cloud.Spot:
		return "price-capacity-optimized"
	case c.overlaid():
		return "prioritized"
	default:
		return "lowest-price"
	}
}

// target returns the market of the fleet call, if it has its own.
func (c choice) target() string {
	if first := c.offers[0]; first.reservation != nil {
		return first.kind().target()
	}
	return ""
}

// priorities numbers the prices from 0 up if EC2 needs explicit priorities: it takes whole numbers,
// the lowest first.
func (c choice) priorities() map[float64]float64 {
	if !c.overlaid() {
		return nil
	}
	out := map[float64]float64{}
	for _, o := range c.offers {
		if _, known := out[o.PricePerHour]; !known {
			out[o.PricePerHour] = float64(len(out))
		}
	}
	return out
}

// types returns the number of instance types.
func (c choice) types() int {
	seen := map[string]bool{}
	for _, o := range c.offers {
		seen[o.InstanceType] = true
	}
	return len(seen)
}

// allows reports whether a node of the capacity type could meet the requirements.
func allows(reqs planning.Requirements, capacityType string) bool {
	values, asked := reqs[karpenter.CapacityTypeLabelKey]
	return !asked || values.Has(capacityType)
}

// short returns a label for which the offers have fewer values than minValues, and their number.
func short(reqs planning.Requirements, offers []offer) (key string, values int) {
	for _, key := range slices.Sorted(maps.Keys(reqs)) {
		if reqs[key].MinValues() == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, o := range offers {
			if value := o.label(key); value != "" {
				seen[value] = true
			}
		}
		if len(seen) < reqs[key].MinValues() {
			return key, len(seen)
		}
	}
	return "", 0
}
