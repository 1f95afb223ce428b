package launchspec

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// maxLaunchTypes is how many instance types one launch tries.
	maxLaunchTypes = 60
	// maxOverrides is how many overrides EC2 takes in one fleet call.
	maxOverrides = 300
)

// choice is what one fleet call tries: offers of one capacity type, the cheapest
// first.
type choice struct {
	capacityType string
	offers       []offer
	// fallback says that spot was allowed as well, and on-demand is what is left.
	fallback bool
}

// precedence is the order in which capacity types are tried.
var precedence = []string{cloud.Reserved, cloud.Spot, cloud.OnDemand}

// Launchable are the options that the launch of a node would try, the cheapest
// first, if exotic tells which types are dear for what ordinary pods use of them.
func Launchable(node *planning.PlannedNode, exotic func(instanceType string) bool) []planning.PricedOffering {
	var offers []offer
	for _, o := range node.Offerings {
		offers = append(offers, offer{PricedOffering: o, exotic: exotic(o.InstanceType)})
	}
	var out []planning.PricedOffering
	for _, o := range narrow(node.Requirements, offers).offers {
		out = append(out, o.PricedOffering)
	}
	return out
}

// choose narrows the ways to buy a node to those of one launch, and refuses what
// would break a promise: a pool that asks for so many values of a label gets them,
// unless the policy is to do without.
func choose(node *planning.PlannedNode, offers []offer, bestEffort bool) (choice, error) {
	out := narrow(node.Requirements, offers)
	refuse := func(format string, args ...any) *fault.Error {
		return fault.F("choosing what a launch of NodePool "+node.NodePool+" tries", fault.Invalid, format, args...)
	}
	if len(out.offers) == 0 {
		return out, refuse("none of the %d offerings that suit can be launched", len(offers)).
			WithHint("see whether the capacity reservations of the EC2NodeClass are still in its status")
	}
	if bestEffort || node.MinValuesRelaxed || !node.Requirements.HasMinValues() {
		return out, nil
	}
	if key, values := short(node.Requirements, out.offers); key != "" {
		return out, refuse("the %d cheapest types have %d values of %s, and the pool asks for %d",
			maxLaunchTypes, values, key, node.Requirements[key].MinValues()).
			WithHint("lower minValues, or set MIN_VALUES_POLICY=BestEffort")
	}
	return out, nil
}

// narrow applies the filters in their order, and takes the first capacity type that
// has anything left.
func narrow(reqs planning.Requirements, offers []offer) choice {
	for _, f := range filters {
		offers = f.keep(reqs, offers)
	}
	for _, capacityType := range precedence {
		of := kept(offers, func(o offer) bool { return o.CapacityType == capacityType })
		if len(of) > 0 {
			return choice{capacityType, truncate(of), capacityType == cloud.OnDemand && allows(reqs, cloud.Spot)}
		}
	}
	return choice{}
}

// truncate keeps the offers of the cheapest types. They come sorted by price, so a
// type's first offer is its rank.
func truncate(offers []offer) []offer {
	types := map[string]bool{}
	var out []offer
	for _, o := range offers {
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
