package launchspec

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

const (
	// maxLaunchTypes is how many instance types one launch tries (B090).
	maxLaunchTypes = 60
	// maxOverrides is how many overrides EC2 takes in one fleet call.
	maxOverrides = 300
)

// choice is what one fleet call tries: offerings of one capacity type, the
// cheapest first.
type choice struct {
	capacityType string
	options      []scheduling.Option
}

// Launchable are the offerings that the launch of a node would try, the cheapest
// first.
func Launchable(node *scheduling.PlannedNode) []scheduling.Option { return choose(node).options }

// choose narrows the ways to buy a node to those of one launch. Spot goes before
// on-demand (B186), but spot that is dearer than the cheapest on-demand offering
// is no bargain (B188), unless the pool asks for variety (B005). Reservations come before both, once catalogues have them.
// Exotic types were left out when the node was planned.
func choose(node *scheduling.PlannedNode) choice {
	onDemand := ofType(node.Options, cloud.OnDemand)
	spot := ofType(node.Options, cloud.Spot)
	if len(onDemand) > 0 && !node.Requirements.Demanding() {
		dearest := onDemand[0].PricePerHour
		spot = slices.DeleteFunc(spot, func(o scheduling.Option) bool { return o.PricePerHour > dearest })
	}
	if len(spot) > 0 {
		return choice{cloud.Spot, cheapestTypes(spot)}
	}
	return choice{cloud.OnDemand, cheapestTypes(onDemand)}
}

func ofType(options []scheduling.Option, capacityType string) []scheduling.Option {
	return slices.DeleteFunc(slices.Clone(options), func(o scheduling.Option) bool { return o.CapacityType != capacityType })
}

// cheapestTypes keeps the offerings of the cheapest types. They come sorted by
// price, so a type's first offering is its rank.
func cheapestTypes(options []scheduling.Option) []scheduling.Option {
	types := map[string]bool{}
	var out []scheduling.Option
	for _, o := range options {
		if !types[o.InstanceType] {
			if len(types) == maxLaunchTypes {
				continue
			}
			types[o.InstanceType] = true
		}
		if len(out) < maxOverrides {
			out = append(out, o)
		}
	}
	return out
}

// strategy lets EC2 weigh spot by how long it is likely to last, and takes the
// cheapest of what does not go away (B185).
func strategy(capacityType string) string {
	if capacityType == cloud.Spot {
		return "price-capacity-optimized"
	}
	return "lowest-price"
}
