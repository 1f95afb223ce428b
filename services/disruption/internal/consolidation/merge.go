package consolidation

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// launchTypes is how many types a launch chooses from (B185).
const launchTypes = 60

// Merged is a simulation's result for one node with its new nodes made one. Planning
// looks for what is cheapest, which may be several small nodes; where one node may
// only be replaced by one (B156), that one is left to be found. As all of the pods
// share a node now, they may share another in the same zone: what they ask of labels
// and room is all that has to be seen to. False where no one type holds them, or
// where more is to be asked: several pools, and limits.
func Merged(c *candidate.Candidate, r scheduling.Result, stock scheduling.Stock) (scheduling.Result, bool) {
	if len(r.Nodes) < 2 || len(c.Pool.Spec.Limits) > 0 {
		return r, false
	}
	one := r.Nodes[0]
	for _, n := range r.Nodes[1:] {
		if n.NodePool != one.NodePool || n.NodePool != c.Node.NodePool {
			return r, false
		}
		one.Requirements = one.Requirements.Intersect(n.Requirements)
		one.Pods = append(slices.Clip(one.Pods), n.Pods...)
		one.MinValuesRelaxed = one.MinValuesRelaxed || n.MinValuesRelaxed
	}
	zone := c.Node.Labels[corev1.LabelTopologyZone]
	one.Requirements = one.Requirements.And(corev1.LabelTopologyZone, scheduling.In(zone))
	one.Requests = sum(r.Nodes)
	one.Options = buyable(&one, c.Price, stock)
	if len(one.Options) == 0 {
		return r, false
	}
	one.PricePerHour = one.Options[0].PricePerHour
	r.Nodes, r.PricePerHour = []scheduling.PlannedNode{one}, one.PricePerHour
	return r, true
}

// sum is what the nodes take together. Their daemons count as often as there are
// nodes, which is more than one node has.
func sum(nodes []scheduling.PlannedNode) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range nodes {
		for name, quantity := range nodes[i].Requests {
			all := out[name]
			all.Add(quantity)
			out[name] = all
		}
	}
	return out
}

// buyable are the offers of types that hold a node's pods and cost less than a price,
// cheapest first.
func buyable(n *scheduling.PlannedNode, below float64, stock scheduling.Stock) []scheduling.Option {
	var out []scheduling.Option
	types := stock.TypesOf(n.NodePool, n.NodeClass)
	for i := range types {
		t := &types[i]
		if t.Exotic || !suits(t.Labels, n.Requirements) || !holds(t.Allocatable, n.Requests) {
			continue
		}
		for k := range t.Offers {
			o := &t.Offers[k]
			if o.Available && o.Reservation == "" && o.PricePerHour > 0 && o.PricePerHour < below && suits(placeOf(o), n.Requirements) {
				out = append(out, o.Option)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b scheduling.Option) int { return cmp.Compare(a.PricePerHour, b.PricePerHour) })
	names := map[string]bool{}
	return slices.DeleteFunc(out, func(o scheduling.Option) bool {
		if !names[o.InstanceType] && len(names) == launchTypes {
			return true
		}
		names[o.InstanceType] = true
		return false
	})
}

func holds(has, wants corev1.ResourceList) bool {
	for name, want := range wants {
		if room := has[name]; want.Cmp(room) > 0 {
			return false
		}
	}
	return true
}
