package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// OfferingPrice is a way to buy an instance type.
type OfferingPrice struct {
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

func newOffering(o planning.PricedOffering) OfferingPrice {
	return OfferingPrice{o.InstanceType, o.Zone, o.CapacityType, o.PricePerHour}
}

// String returns the offering in words.
func (o OfferingPrice) String() string {
	return fmt.Sprintf("%s (%s, %s, $%.4f)", o.InstanceType, o.CapacityType, o.Zone, o.PricePerHour)
}

// TypeGroup is the instance types that one rule removes from the choice.
type TypeGroup struct {
	// Rule is one of solver's Type rules, or RuleExotic or RulePrice; empty for the types that remain.
	Rule string `json:"rule"`
	// Key is the label or resource of the rule, if there is one.
	Key string `json:"key,omitempty"`
	// Detail describes the rule.
	Detail string `json:"detail"`
	Count  int    `json:"count"`
	// Cheapest is the cheapest offering of these types, if one has a price.
	Cheapest *OfferingPrice `json:"cheapest,omitempty"`
}

// Rules by which a launch leaves out instance types that could hold the pods.
const (
	// RuleExotic: the type is bare metal or has GPUs or accelerators, which the pods do not use.
	RuleExotic = "exotic"
	// RulePrice: a launch lists the 60 cheapest types, and no spot that costs more than on-demand.
	RulePrice = "price"
	// RuleCapacityType: the type can only be bought in another capacity type than that of the launch.
	RuleCapacityType = "capacity-type"
)

// typeRules describes the rules, in the order of the groups.
var typeRules = []struct{ rule, detail string }{
	{"", "can hold the pods and can be launched"},
	{RulePrice, "cost more than what the launch lists: the 60 cheapest types, and no spot above the cheapest on-demand price"},
	{RuleCapacityType, "can only be bought in another capacity type: a launch uses one, reserved before spot before on-demand"},
	{RuleExotic, "are bare metal or have GPUs or accelerators, which the pods do not use"},
	{solver.TypePoolRequirements, "are excluded by the requirements of the NodePool"},
	{solver.TypePodRequirements, "are excluded by the node selector, node affinity or volumes of the pods"},
	{solver.TypeResources, "are too small for the pods and the daemons"},
	{solver.TypeLimits, "would exceed the limits of the NodePool"},
	{solver.TypeAddresses, "are only in zones without free IP addresses"},
	{solver.TypeUnavailable, "have no capacity: EC2 refused them recently"},
	{solver.TypeReservationFull, "are only allowed in capacity reservations that are full"},
	{solver.TypeNoPrice, "have no price yet"},
}

// groupTypes groups types by rule and key: in the order of typeRules, then the largest group first.
// launched are the offerings that a launch lists; nil if nothing is launched.
func groupTypes(types []solver.TypeExplanation, launched []planning.PricedOffering, exotic func(string) bool) []TypeGroup {
	isLaunched := map[string]bool{}
	for _, o := range launched {
		isLaunched[o.InstanceType] = true
	}
	out := []TypeGroup{}
	for _, t := range types {
		rule := t.Rule
		if rule == "" && len(launched) > 0 && !isLaunched[t.InstanceType] {
			rule = leftOutRule(t, launched[0].CapacityType, exotic)
		}
		i := slices.IndexFunc(out, func(g TypeGroup) bool { return g.Rule == rule && g.Key == t.Key })
		if i < 0 {
			i = len(out)
			out = append(out, TypeGroup{Rule: rule, Key: t.Key, Detail: describeTypeRule(rule)})
		}
		out[i].Count++
		if t.Cheapest.InstanceType != "" && (out[i].Cheapest == nil || t.Cheapest.PricePerHour < out[i].Cheapest.PricePerHour) {
			one := newOffering(t.Cheapest)
			out[i].Cheapest = &one
		}
	}
	slices.SortStableFunc(out, func(a, b TypeGroup) int {
		if x, y := rankTypeRule(a.Rule), rankTypeRule(b.Rule); x != y {
			return x - y
		}
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Key, b.Key)
	})
	return out
}

// leftOutRule returns why a launch of a capacity type leaves out a type that can hold the pods.
func leftOutRule(t solver.TypeExplanation, capacityType string, exotic func(string) bool) string {
	switch {
	case exotic(t.InstanceType):
		return RuleExotic
	case t.Cheapest.CapacityType != capacityType:
		return RuleCapacityType
	}
	return RulePrice
}

func rankTypeRule(rule string) int {
	return slices.IndexFunc(typeRules, func(r struct{ rule, detail string }) bool { return r.rule == rule })
}

func describeTypeRule(rule string) string {
	if i := rankTypeRule(rule); i >= 0 {
		return typeRules[i].detail
	}
	return ""
}

// groupPoolTypes groups the types of a NodePool for a pod that is planned alone.
func (d *PlanDecision) groupPoolTypes(p *solver.PoolExplanation) []TypeGroup {
	exotic := exoticTypes(d.Stock, p.NodePool, p.NodeClass)
	if len(p.Node.Pods) == 0 {
		return groupTypes(p.Types, nil, exotic)
	}
	return groupTypes(p.Types, launchspec.Launchable(&p.Node, exotic), exotic)
}
