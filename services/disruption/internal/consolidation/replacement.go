// Package consolidation says whether what a simulation found is worth doing, and in
// which order nodes are tried.
//
// A replacement must be strictly cheaper however its launch falls out: offers that
// would make it dearer are taken off the list, and a launch that finds none of the
// others is rolled back instead. Never do more nodes come than go.
package consolidation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules by which a node stays because of what its removal would lead to.
const (
	// RuleUnplaceable: not all of its pods have another place.
	RuleUnplaceable = "pods-unplaceable"
	// RuleNoSaving: what would replace it is not cheaper.
	RuleNoSaving = "no-saving"
	// RuleManyNodes: more nodes would have to come than go.
	RuleManyNodes = "more-nodes"
	// RuleSpotToSpot: spot is replaced with spot only where that is allowed, and where
	// the choice is wide enough.
	RuleSpotToSpot = "spot-to-spot"
	// RuleSameType: the replacement would be one of the nodes that go.
	RuleSameType = "same-type"
	// RuleMinValues: what is cheaper has too few values of a label that the NodePool
	// asks for.
	RuleMinValues = "min-values"
	// RuleBalanced: it saves too little for the pods that it moves.
	RuleBalanced = "balanced"
)

// spotTypes is how many cheaper types a spot node must have to be replaced with
// spot, and how many the launch then chooses from: its result is always among
// those, so it is not replaced again.
const spotTypes = 15

// ReplacementRules applies the rules of replacement.
type ReplacementRules struct {
	// SpotToSpot lets spot replace spot.
	SpotToSpot bool
	// Labels are those of an instance type of a NodePool.
	Labels func(nodePool, class, instanceType string) map[string]string
}

// CheckAllPlaced reports whether all pods found a place.
func CheckAllPlaced(r planning.Result) candidate.Objection {
	if len(r.Unplaced) > 0 {
		u := r.Unplaced[0]
		detail := fmt.Sprintf("pod %s/%s has no other place", u.Namespace, u.Pods[0].Name)
		if len(u.Rejections) > 0 {
			detail += ": " + u.Rejections[0].Detail
		}
		return candidate.Objection{Rule: RuleUnplaceable, Detail: detail}
	}
	if r.Partial {
		return candidate.Objection{Rule: RuleUnplaceable, Detail: "there was no time to find a place for all of its pods"}
	}
	return candidate.Objection{}
}

// CheckedResult is what is left of a simulation's result once the rules are applied.
type CheckedResult struct {
	// Result has only the options that may be launched.
	Result planning.Result
	// Saved is what the nodes cost less what replaces them is expected to cost, in US
	// dollars an hour. It is above zero where there is no objection, and told as well
	// where only spoilers stand against it.
	Saved     float64
	Objection candidate.Objection
	// RetryWithout are the nodes without which the objection might not stand, if it is
	// about some of them.
	RetryWithout []*candidate.Candidate
}

// CheckReplacement judges what would become of nodes. It changes nothing that others share.
func (j ReplacementRules) CheckReplacement(nodes []*candidate.Candidate, r planning.Result) CheckedResult {
	out := CheckedResult{Result: r, Objection: CheckAllPlaced(r)}
	if !out.Objection.IsNone() {
		out.RetryWithout = nodesOfUnplaced(nodes, r)
		return out
	}
	if len(r.Nodes) > len(nodes) {
		out.Objection = candidate.Objection{Rule: RuleManyNodes, Subject: strconv.Itoa(len(r.Nodes)), Detail: fmt.Sprintf("%d nodes would have to come for %d", len(r.Nodes), len(nodes))}
		return out
	}
	price := 0.0
	for _, c := range nodes {
		price += c.Price
	}
	out.Result.Nodes = slices.Clone(r.Nodes)
	j.narrowNodes(nodes, price, &out)
	if !out.Objection.IsNone() {
		return out
	}
	out.Result.PricePerHour = totalPrice(out.Result.Nodes)
	if out.Saved = price - out.Result.PricePerHour; out.Saved <= 0 {
		out.Objection = candidate.Objection{Rule: RuleNoSaving, Detail: "nothing that holds its pods is cheaper"}
	}
	return out
}

// narrowNodes narrows each new node to what may be launched.
func (j ReplacementRules) narrowNodes(nodes []*candidate.Candidate, price float64, out *CheckedResult) {
	planned := out.Result.Nodes
	spot := areAllSpot(nodes)
	if spot && !j.SpotToSpot && slices.ContainsFunc(planned, func(n planning.PlannedNode) bool { return hasCapacityType(&n, karpenter.CapacityTypeSpot) }) {
		out.Objection = candidate.Objection{Rule: RuleSpotToSpot, Detail: "spot would replace spot, which the feature gate SpotToSpotConsolidation allows, and it is off"}
		return
	}
	sum := totalPrice(planned)
	if len(planned) > 0 && sum >= price {
		out.Objection = candidate.Objection{Rule: RuleNoSaving, Detail: fmt.Sprintf("what replaces it costs $%.4f an hour, and it costs $%.4f", sum, price)}
		return
	}
	for i := range planned {
		n := &planned[i]
		// What is saved may be spent where it was saved: the caps add up to the price.
		below := price
		if sum > 0 {
			below = price * n.PricePerHour / sum
		}
		no := j.narrowOptions(nodes, n, below, spot)
		if no.Rule == RuleSameType {
			out.Saved = price - sum
			out.RetryWithout = append(out.RetryWithout, sameTypeNode(nodes, n, out.RetryWithout)...)
		} else if !no.IsNone() {
			out.Objection, out.RetryWithout = no, nil
			return
		}
		out.Objection = cmp.Or(out.Objection, no)
	}
	for i := 0; i < len(planned) && out.Objection.IsNone(); i++ {
		out.Objection = j.pinRequirements(&planned[i])
	}
}

func totalPrice(planned []planning.PlannedNode) float64 {
	sum := 0.0
	for i := range planned {
		sum += planned[i].PricePerHour
	}
	return sum
}

// nodesOfUnplaced are the nodes whose pods found no place.
func nodesOfUnplaced(nodes []*candidate.Candidate, r planning.Result) []*candidate.Candidate {
	lost := map[string]bool{}
	for _, u := range r.Unplaced {
		for _, pod := range u.Pods {
			lost[pod.Node] = true
		}
	}
	var out []*candidate.Candidate
	for _, c := range nodes {
		if lost[c.Node.Name] {
			out = append(out, c)
		}
	}
	return out
}

// narrowOptions leaves the options of one new node that cost less than a cap.
func (j ReplacementRules) narrowOptions(nodes []*candidate.Candidate, n *planning.PlannedNode, below float64, spot bool) candidate.Objection {
	spotOnly := spot && hasCapacityType(n, karpenter.CapacityTypeSpot)
	keepOptions(n, func(o planning.Option) bool {
		return o.PricePerHour > 0 && o.PricePerHour < below && (!spotOnly || o.CapacityType == karpenter.CapacityTypeSpot)
	})
	// Spot is tried first; if there is none, on-demand might be dearer than what goes.
	if hasCapacityType(n, karpenter.CapacityTypeSpot) && hasCapacityType(n, karpenter.CapacityTypeOnDemand) {
		keepOptions(n, func(o planning.Option) bool { return o.CapacityType != karpenter.CapacityTypeOnDemand })
	}
	if len(n.Options) == 0 {
		return candidate.Objection{Rule: RuleNoSaving, Detail: "nothing that holds its pods is cheaper, however the launch falls out"}
	}
	if len(nodes) > 1 {
		least := cheapestSameType(nodes, n)
		cheaper := func(o planning.Option) bool { return least == 0 || o.PricePerHour < least }
		if !slices.ContainsFunc(n.Options, cheaper) {
			return candidate.Objection{Rule: RuleSameType, Detail: "the replacement would be of a type that goes: one of those nodes stays instead"}
		}
		keepOptions(n, cheaper)
	}
	if len(nodes) == 1 && spotOnly {
		return j.limitSpotTypes(n)
	}
	return candidate.Objection{}
}

// limitSpotTypes cuts the list of a spot node that replaces a spot node.
func (j ReplacementRules) limitSpotTypes(n *planning.PlannedNode) candidate.Objection {
	names := typeNames(n)
	if len(names) < spotTypes {
		return candidate.Objection{Rule: RuleSpotToSpot, Subject: strconv.Itoa(len(names)), Detail: fmt.Sprintf("%d spot types are cheaper, and %d must be", len(names), spotTypes)}
	}
	most := spotTypes
	for most < len(names) && j.missingMinValue(n, names[:most]) != "" {
		most++
	}
	keepOptions(n, func(o planning.Option) bool { return slices.Contains(names[:most], o.InstanceType) })
	return candidate.Objection{}
}

// pinRequirements writes down in the requirements what the options are, and asks whether enough
// of them are left for the pool.
func (j ReplacementRules) pinRequirements(n *planning.PlannedNode) candidate.Objection {
	names := typeNames(n)
	if key := j.missingMinValue(n, names); key != "" && !n.MinValuesRelaxed {
		return candidate.Objection{Rule: RuleMinValues, Subject: key, Detail: fmt.Sprintf("what is cheaper has too few values of %s for NodePool %s", key, n.NodePool)}
	}
	var kinds []string
	for _, o := range n.Options {
		if !slices.Contains(kinds, o.CapacityType) {
			kinds = append(kinds, o.CapacityType)
		}
	}
	n.Requirements = n.Requirements.With(corev1.LabelInstanceTypeStable, planning.In(names...)).
		With(karpenter.CapacityTypeLabelKey, planning.In(kinds...))
	n.PricePerHour = n.Options[0].PricePerHour
	if n.MinValuesRelaxed {
		n.LowerMinValues(func(o planning.Option, key string) (string, bool) { return j.labelValue(n, o, key) })
	}
	return candidate.Objection{}
}

// missingMinValue is a label of which the options of these types have fewer values than the
// pool asks for, or "".
func (j ReplacementRules) missingMinValue(n *planning.PlannedNode, names []string) string {
	for _, key := range slices.Sorted(maps.Keys(n.Requirements)) {
		least := n.Requirements[key].MinValues()
		if least == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, o := range n.Options {
			if value, ok := j.labelValue(n, o, key); ok && slices.Contains(names, o.InstanceType) {
				seen[value] = true
			}
		}
		if len(seen) < least {
			return key
		}
	}
	return ""
}

// labelValue is the label of a node that is bought so.
func (j ReplacementRules) labelValue(n *planning.PlannedNode, o planning.Option, key string) (string, bool) {
	switch key {
	case corev1.LabelInstanceTypeStable:
		return o.InstanceType, true
	case corev1.LabelTopologyZone:
		return o.Zone, true
	case karpenter.LabelTopologyZoneID:
		return o.ZoneID, true
	case karpenter.CapacityTypeLabelKey:
		return o.CapacityType, true
	}
	value, ok := j.Labels(n.NodePool, n.NodeClass, o.InstanceType)[key]
	return value, ok
}

// cheapestSameType is the lowest price of a node that goes whose type the replacement
// might be; 0 if there is none.
func cheapestSameType(nodes []*candidate.Candidate, n *planning.PlannedNode) float64 {
	least := 0.0
	for _, c := range nodes {
		if least > 0 && c.Price >= least {
			continue
		}
		name := c.Node.Labels[corev1.LabelInstanceTypeStable]
		if slices.ContainsFunc(n.Options, func(o planning.Option) bool { return o.InstanceType == name }) {
			least = c.Price
		}
	}
	return least
}

// sameTypeNode is the node that might stay as the replacement: of those that cost least
// among the types that it might be, the one that is to go last and stays for no
// other replacement yet.
func sameTypeNode(nodes []*candidate.Candidate, n *planning.PlannedNode, others []*candidate.Candidate) []*candidate.Candidate {
	least := cheapestSameType(nodes, n)
	for _, c := range slices.Backward(nodes) {
		if slices.Contains(others, c) {
			continue
		}
		name := c.Node.Labels[corev1.LabelInstanceTypeStable]
		if c.Price == least && slices.ContainsFunc(n.Options, func(o planning.Option) bool { return o.InstanceType == name }) {
			return []*candidate.Candidate{c}
		}
	}
	return nil
}

// keepOptions narrows the options, which other nodes share.
func keepOptions(n *planning.PlannedNode, good func(planning.Option) bool) {
	if !slices.ContainsFunc(n.Options, func(o planning.Option) bool { return !good(o) }) {
		return
	}
	var out []planning.Option
	for _, o := range n.Options {
		if good(o) {
			out = append(out, o)
		}
	}
	n.Options = out
}

// typeNames are the names in the options, the cheapest first.
func typeNames(n *planning.PlannedNode) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range n.Options {
		if !seen[o.InstanceType] {
			seen[o.InstanceType] = true
			out = append(out, o.InstanceType)
		}
	}
	return out
}

func hasCapacityType(n *planning.PlannedNode, capacityType string) bool {
	return slices.ContainsFunc(n.Options, func(o planning.Option) bool { return o.CapacityType == capacityType })
}

func areAllSpot(nodes []*candidate.Candidate) bool {
	return !slices.ContainsFunc(nodes, func(c *candidate.Candidate) bool {
		return c.Node.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeSpot
	})
}
