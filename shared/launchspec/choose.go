package launchspec

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// maxLaunchTypes is how many instance types one launch tries.
	maxLaunchTypes = 60
	// maxOverrides is EC2's maximum of overrides in one fleet call.
	maxOverrides = 300
	// maxConfigs is EC2's maximum of launch templates in one fleet call (FleetLaunchTemplateConfigListRequest).
	maxConfigs = 50
)

// choice is the offers that one fleet call tries: of one capacity type, the cheapest first.
type choice struct {
	capacityType string
	offers       []offer
	// fallback is true if spot was allowed too, but only on-demand offers remain.
	fallback bool
}

// precedence is the order in which capacity types are tried.
var precedence = []string{cloud.Reserved, cloud.Spot, cloud.OnDemand}

// Launchable returns the offerings that the launch of a node would try, the cheapest first. exotic
// reports whether a type is expensive for ordinary pods.
func Launchable(node *planning.PlannedNode, exotic func(instanceType string) bool) []planning.PricedOffering {
	offers := make([]offer, 0, len(node.Offerings))
	for _, o := range node.Offerings {
		offers = append(offers, offer{PricedOffering: o, exotic: exotic(o.InstanceType)})
	}
	var out []planning.PricedOffering
	for _, o := range narrow(node.Requirements, offers).offers {
		out = append(out, o.PricedOffering)
	}
	return out
}

// HaveSameLaunch reports whether the launches of two nodes try the same offerings. It compares lists of offerings by their
// memory, because the nodes of a plan share them.
func HaveSameLaunch(a, b *planning.PlannedNode) bool {
	if whereabouts(a.Offerings) != whereabouts(b.Offerings) || a.Requirements.HasMinValues() != b.Requirements.HasMinValues() {
		return false
	}
	for _, key := range offerKeys {
		valuesA, askedA := a.Requirements[key]
		valuesB, askedB := b.Requirements[key]
		if askedA != askedB || !valuesA.Equals(valuesB) {
			return false
		}
	}
	return true
}

// check returns an error if nothing was chosen from the matching offers of a node, or if the chosen ones cover fewer
// values than minValues requires and the policy is not BestEffort.
func (c choice) check(node *planning.PlannedNode, matching int, bestEffort bool) error {
	refuse := func(format string, args ...any) *fault.Error {
		return fault.F("choosing the offerings for a launch of NodePool "+node.NodePool, fault.Invalid, format, args...)
	}
	if len(c.offers) == 0 {
		return refuse("none of the %d matching offerings can be launched", matching).
			WithHint("check that the capacity reservations of the EC2NodeClass are still in its status")
	}
	if bestEffort || node.MinValuesRelaxed || !node.Requirements.HasMinValues() {
		return nil
	}
	if key, values := short(node.Requirements, c.offers); key != "" {
		return refuse("the %d cheapest types have %d values of %s, but the NodePool requires %d",
			c.types(), values, key, node.Requirements[key].MinValues()).
			WithHint("lower minValues, or set MIN_VALUES_POLICY=BestEffort")
	}
	return nil
}

// narrow applies the filters in order, and returns the offers of the first capacity type that has any.
// It reuses the memory of the offers.
func narrow(reqs planning.Requirements, offers []offer) choice {
	for _, f := range filters {
		offers = f.keep(reqs, offers)
	}
	for _, capacityType := range precedence {
		isOf := func(o offer) bool { return o.CapacityType == capacityType }
		if slices.ContainsFunc(offers, isOf) {
			return choice{capacityType, truncate(kept(offers, isOf)), capacityType == cloud.OnDemand && allows(reqs, cloud.Spot)}
		}
	}
	return choice{}
}

// truncate keeps the offers of the cheapest types. Offers are sorted by price, so the first offer of a
// type is its cheapest.
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
