package launchspec

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// overlaid reports whether a NodeOverlay made a price: EC2 knows nothing of it, and
// has to be told the order.
func (c choice) overlaid() bool {
	return slices.ContainsFunc(c.offers, func(o offer) bool { return o.PricedByOverlay })
}

// strategy lets EC2 weigh spot by how long it is likely to last, and takes the
// cheapest of what does not go away. What is reserved in a market of its own
// has no strategy.
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

// target is the market of the fleet call, where it has one of its own.
func (c choice) target() string {
	if first := c.offers[0]; first.reservation != nil {
		return first.kind().target()
	}
	return ""
}

// priorities number the prices from 0 up, where EC2 has to be told the order: it
// takes whole numbers, the lowest first.
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

// types counts the instance types that are tried.
func (c choice) types() int {
	seen := map[string]bool{}
	for _, o := range c.offers {
		seen[o.InstanceType] = true
	}
	return len(seen)
}

// allows reports whether a node of the capacity type could satisfy the requirements.
func allows(reqs planning.Requirements, capacityType string) bool {
	values, asked := reqs[karpenter.CapacityTypeLabelKey]
	return !asked || values.Has(capacityType)
}

// short finds a label of which the offers have fewer values than the requirements
// ask for, and how many they have.
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
