// Package consolidation decides whether the result of a simulation is worth carrying out, and
// computes the prices and scores that nodes are sorted by.
//
// A replacement must be strictly cheaper with any of the options that EC2 may launch: options that
// would make it more expensive are removed, and a launch that finds none of the others available is
// rolled back. There are never more replacements than nodes removed.
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

// Rules that keep a node because of the simulated result of its removal.
const (
	// RuleUnplaceable: not all of its pods can be scheduled elsewhere.
	RuleUnplaceable = "pods-unplaceable"
	// RuleNoSaving: its replacement is not cheaper.
	RuleNoSaving = "no-saving"
	// RuleManyNodes: more nodes would be launched than removed.
	RuleManyNodes = "more-nodes"
	// RuleSpotToSpot: spot replaces spot only if that is enabled and enough instance types are
	// cheaper.
	RuleSpotToSpot = "spot-to-spot"
	// RuleSameType: the replacement would have the instance type of a removed node.
	RuleSameType = "same-type"
	// RuleMinValues: the cheaper options have too few values of a label with minValues.
	RuleMinValues = "min-values"
	// RuleBalanced: it saves too little for the pods that it moves.
	RuleBalanced = "balanced"
)

// spotTypes is how many cheaper instance types a spot replacement of spot nodes needs, and how many
// its launch chooses from. The launched type is always one of these, so it is not replaced again. If
// one node replaces several, there is no minimum: each such move leaves fewer nodes, so moves end
// without it.
const spotTypes = 15

// ReplacementRules checks simulated results.
type ReplacementRules struct {
	// SpotToSpot allows spot nodes to replace spot nodes.
	SpotToSpot bool
	// Labels returns the labels of an instance type of a NodePool.
	Labels func(nodePool, class, instanceType string) map[string]string
}

// CheckAllPlaced objects to a result in which not all pods are placed.
func CheckAllPlaced(r planning.Result) candidate.Objection {
	if len(r.Unplaced) > 0 {
		u := r.Unplaced[0]
		detail := fmt.Sprintf("pod %s/%s cannot be scheduled elsewhere", u.Namespace, u.Pods[0].Name)
		if len(u.Rejections) > 0 {
			detail += ": " + u.Rejections[0].Detail
		}
		return candidate.Objection{Rule: RuleUnplaceable, Detail: detail}
	}
	if r.Partial {
		return candidate.Objection{Rule: RuleUnplaceable, Detail: "the simulation reached its limit before all of its pods were placed"}
	}
	return candidate.Objection{}
}

// CheckedResult is a simulated result after the rules were applied.
type CheckedResult struct {
	// Result has only the options that may be launched.
	Result planning.Result
	// Saved is the price of the nodes minus the expected price of their replacements, in US dollars
	// an hour. It is positive if there is no objection, and also set if the only objection concerns
	// the nodes in RetryWithout.
	Saved     float64
	Objection candidate.Objection
	// RetryWithout are the nodes without which the objection might not apply.
	RetryWithout []*candidate.Candidate
}

// CheckReplacement applies the rules to the result of removing the nodes. It does not change shared
// data.
func (j ReplacementRules) CheckReplacement(nodes []*candidate.Candidate, r planning.Result) CheckedResult {
	out := CheckedResult{Result: r, Objection: CheckAllPlaced(r)}
	if !out.Objection.IsNone() {
		out.RetryWithout = nodesOfUnplaced(nodes, r)
		return out
	}
	if len(r.Nodes) > len(nodes) {
		out.Objection = candidate.Objection{Rule: RuleManyNodes, Subject: strconv.Itoa(len(r.Nodes)), Detail: fmt.Sprintf("%d nodes would have to be launched for %d removed", len(r.Nodes), len(nodes))}
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
		out.Objection = candidate.Objection{Rule: RuleNoSaving, Detail: "no cheaper node can hold its pods"}
	}
	return out
}

// narrowNodes narrows each new node to the options that may be launched.
func (j ReplacementRules) narrowNodes(nodes []*candidate.Candidate, price float64, out *CheckedResult) {
	planned := out.Result.Nodes
	spot, withoutSpot := findReplacedSpot(nodes, len(planned))
	if !j.allowsSpot(spot, planned) {
		out.Objection = candidate.Objection{Rule: RuleSpotToSpot, Detail: "spot would replace spot, and the feature gate SpotToSpotConsolidation is off"}
		out.RetryWithout = withoutSpot
		return
	}
	sum := totalPrice(planned)
	if len(planned) > 0 && sum >= price {
		out.Objection = candidate.Objection{Rule: RuleNoSaving, Detail: fmt.Sprintf("its replacement costs $%.4f an hour, and it costs $%.4f", sum, price)}
		return
	}
	isMerged := len(planned) == 1 && len(nodes) > 1
	for i := range planned {
		n := &planned[i]
		// Distribute the price over the new nodes, so that their caps add up to it.
		maxPrice := price
		if sum > 0 {
			maxPrice = price * n.PricePerHour / sum
		}
		no := narrowOptions(nodes, n, maxPrice, len(spot) > 0)
		if no.IsNone() && len(spot) > 0 && !isMerged {
			no = j.limitSpotTypes(n)
		}
		switch {
		case no.Rule == RuleSameType:
			out.Saved = price - sum
			out.RetryWithout = append(out.RetryWithout, sameTypeNode(nodes, n, out.RetryWithout)...)
		case no.Rule == RuleSpotToSpot:
			out.Objection, out.RetryWithout = no, withoutSpot
			return
		case !no.IsNone():
			out.Objection, out.RetryWithout = no, nil
			return
		}
		out.Objection = cmp.Or(out.Objection, no)
	}
	for i := 0; i < len(planned) && out.Objection.IsNone(); i++ {
		out.Objection = j.pinRequirements(&planned[i])
	}
}

// allowsSpot reports whether the feature gate allows the new nodes to replace the spot nodes.
func (j ReplacementRules) allowsSpot(spot []*candidate.Candidate, planned []planning.PlannedNode) bool {
	return j.SpotToSpot || len(spot) == 0 || !slices.ContainsFunc(planned, func(n planning.PlannedNode) bool { return hasCapacityType(&n, karpenter.CapacityTypeSpot) })
}

func totalPrice(planned []planning.PlannedNode) float64 {
	sum := 0.0
	for i := range planned {
		sum += planned[i].PricePerHour
	}
	return sum
}

// nodesOfUnplaced returns the nodes whose pods are not placed.
func nodesOfUnplaced(nodes []*candidate.Candidate, r planning.Result) []*candidate.Candidate {
	unplaced := map[string]bool{}
	for _, u := range r.Unplaced {
		for _, pod := range u.Pods {
			unplaced[pod.Node] = true
		}
	}
	var out []*candidate.Candidate
	for _, c := range nodes {
		if unplaced[c.Node.Name] {
			out = append(out, c)
		}
	}
	return out
}

// narrowOptions keeps the options of a new node that cost less than maxPrice. If spot nodes are
// replaced and the new node may be spot, it has to be.
func narrowOptions(nodes []*candidate.Candidate, n *planning.PlannedNode, maxPrice float64, spot bool) candidate.Objection {
	spotOnly := spot && hasCapacityType(n, karpenter.CapacityTypeSpot)
	keepOptions(n, func(o planning.PricedOffering) bool {
		return o.PricePerHour > 0 && o.PricePerHour < maxPrice && (!spotOnly || o.CapacityType == karpenter.CapacityTypeSpot)
	})
	// EC2 tries spot first. If it has none, on-demand might cost more than the removed nodes.
	if hasCapacityType(n, karpenter.CapacityTypeSpot) && hasCapacityType(n, karpenter.CapacityTypeOnDemand) {
		keepOptions(n, func(o planning.PricedOffering) bool { return o.CapacityType != karpenter.CapacityTypeOnDemand })
	}
	if len(n.Offerings) == 0 {
		return candidate.Objection{Rule: RuleNoSaving, Detail: "no node that can hold its pods is certain to be cheaper"}
	}
	if len(nodes) > 1 {
		least := cheapestSameType(nodes, n)
		cheaper := func(o planning.PricedOffering) bool { return least == 0 || o.PricePerHour < least }
		if !slices.ContainsFunc(n.Offerings, cheaper) {
			return candidate.Objection{Rule: RuleSameType, Detail: "the replacement would have the instance type of a removed node, which can stay instead"}
		}
		keepOptions(n, cheaper)
	}
	return candidate.Objection{}
}

// limitSpotTypes limits the instance types of a new node that replaces spot nodes, if it is spot.
func (j ReplacementRules) limitSpotTypes(n *planning.PlannedNode) candidate.Objection {
	if !hasCapacityType(n, karpenter.CapacityTypeSpot) {
		return candidate.Objection{}
	}
	names := typeNames(n)
	if len(names) < spotTypes {
		return candidate.Objection{Rule: RuleSpotToSpot, Subject: strconv.Itoa(len(names)), Detail: fmt.Sprintf("%d spot instance types are cheaper; %d are required", len(names), spotTypes)}
	}
	most := spotTypes
	for most < len(names) && j.missingMinValue(n, names[:most]) != "" {
		most++
	}
	keepOptions(n, func(o planning.PricedOffering) bool { return slices.Contains(names[:most], o.InstanceType) })
	return candidate.Objection{}
}

// pinRequirements sets the requirements to the values of the options, and checks minValues.
func (j ReplacementRules) pinRequirements(n *planning.PlannedNode) candidate.Objection {
	names := typeNames(n)
	if key := j.missingMinValue(n, names); key != "" && !n.MinValuesRelaxed {
		return candidate.Objection{Rule: RuleMinValues, Subject: key, Detail: fmt.Sprintf("the cheaper options have too few values of %s for NodePool %s", key, n.NodePool)}
	}
	var kinds []string
	for _, o := range n.Offerings {
		if !slices.Contains(kinds, o.CapacityType) {
			kinds = append(kinds, o.CapacityType)
		}
	}
	n.Requirements = n.Requirements.WithRequirement(corev1.LabelInstanceTypeStable, planning.In(names...)).
		WithRequirement(karpenter.CapacityTypeLabelKey, planning.In(kinds...))
	n.PricePerHour = n.Offerings[0].PricePerHour
	if n.MinValuesRelaxed {
		n.LowerMinValues(func(o planning.PricedOffering, key string) (string, bool) { return j.labelValue(n, o, key) })
	}
	return candidate.Objection{}
}

// missingMinValue returns a label of which the options of these instance types have fewer values
// than minValues, or "".
func (j ReplacementRules) missingMinValue(n *planning.PlannedNode, names []string) string {
	for _, key := range slices.Sorted(maps.Keys(n.Requirements)) {
		least := n.Requirements[key].MinValues()
		if least == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, o := range n.Offerings {
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

// labelValue returns the value of the label on a node launched from the option.
func (j ReplacementRules) labelValue(n *planning.PlannedNode, o planning.PricedOffering, key string) (string, bool) {
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

// cheapestSameType returns the lowest price of a removed node whose instance type the replacement
// might have; 0 without such a node.
func cheapestSameType(nodes []*candidate.Candidate, n *planning.PlannedNode) float64 {
	least := 0.0
	for _, c := range nodes {
		if least > 0 && c.Price >= least {
			continue
		}
		name := c.Node.Labels[corev1.LabelInstanceTypeStable]
		if slices.ContainsFunc(n.Offerings, func(o planning.PricedOffering) bool { return o.InstanceType == name }) {
			least = c.Price
		}
	}
	return least
}

// sameTypeNode returns the node that could be kept as the replacement: the last of the cheapest
// nodes whose instance type the replacement might have, unless it is already kept for another
// replacement.
func sameTypeNode(nodes []*candidate.Candidate, n *planning.PlannedNode, others []*candidate.Candidate) []*candidate.Candidate {
	least := cheapestSameType(nodes, n)
	for _, c := range slices.Backward(nodes) {
		if slices.Contains(others, c) {
			continue
		}
		name := c.Node.Labels[corev1.LabelInstanceTypeStable]
		if c.Price == least && slices.ContainsFunc(n.Offerings, func(o planning.PricedOffering) bool { return o.InstanceType == name }) {
			return []*candidate.Candidate{c}
		}
	}
	return nil
}

// keepOptions removes options from the node. It does not change the underlying list, which other
// nodes share.
func keepOptions(n *planning.PlannedNode, keep func(planning.PricedOffering) bool) {
	if !slices.ContainsFunc(n.Offerings, func(o planning.PricedOffering) bool { return !keep(o) }) {
		return
	}
	var out []planning.PricedOffering
	for _, o := range n.Offerings {
		if keep(o) {
			out = append(out, o)
		}
	}
	n.Offerings = out
}

// typeNames returns the instance types of the options, the cheapest first.
func typeNames(n *planning.PlannedNode) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range n.Offerings {
		if !seen[o.InstanceType] {
			seen[o.InstanceType] = true
			out = append(out, o.InstanceType)
		}
	}
	return out
}

func hasCapacityType(n *planning.PlannedNode, capacityType string) bool {
	return slices.ContainsFunc(n.Offerings, func(o planning.PricedOffering) bool { return o.CapacityType == capacityType })
}

// findReplacedSpot returns the spot nodes whose replacement is restricted because they are spot, and
// those of them without which the set may be tried again. One node may replace spot and on-demand nodes
// together without restriction, as in Karpenter. With several new nodes, a spot node could be replaced
// again and again next to any on-demand node.
func findReplacedSpot(nodes []*candidate.Candidate, planned int) (spot, withoutSpot []*candidate.Candidate) {
	for _, c := range nodes {
		if c.Node.Labels[karpenter.CapacityTypeLabelKey] == karpenter.CapacityTypeSpot {
			spot = append(spot, c)
		}
	}
	switch {
	case len(spot) == len(nodes):
		return spot, nil
	case planned <= 1:
		return nil, nil
	}
	return spot, spot
}
