package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// staticNodes are the nodes that static NodePools lack. They hold no pods and have the
// cheapest types that the NodePool allows. Where a price limit is short, nodes for pods come
// first.
func (w *world) staticNodes(stock Stock, shortfalls []Shortfall, beside []PlannedNode) []PlannedNode {
	var out []PlannedNode
	for _, short := range shortfalls {
		i := slices.IndexFunc(w.snapshot.NodePools, func(np karpenter.NodePool) bool { return np.Name == short.NodePool })
		p := w.newPool(&w.snapshot.NodePools[i], stock, nil)
		if p.refusal.Rule != "" {
			continue // It is not ready; its own conditions say why.
		}
		node, ok := w.staticNode(p, stock.TypesOf(p.name, p.class))
		if !ok {
			continue
		}
		count := short.Count
		if p.priced {
			if node.Options, count = affordable(node.Options, count, w.moneyLeft(p, beside, out)); count == 0 {
				continue
			}
		}
		for range count {
			out = append(out, node)
		}
	}
	return out
}

// staticNode is what one more node of a static pool is launched as; false when
// nothing suits or can be bought.
func (w *world) staticNode(p *pool, types []Type) (PlannedNode, bool) {
	options := buyable(types, p.base, false)
	if len(options) == 0 {
		options = buyable(types, p.base, true) // The pool allows nothing ordinary.
	}
	if len(options) == 0 {
		return PlannedNode{}, false
	}
	slices.SortStableFunc(options, func(x, y Option) int { return cmp.Compare(x.PricePerHour, y.PricePerHour) })
	var names []string
	options = slices.DeleteFunc(options, func(o Option) bool {
		if !slices.Contains(names, o.InstanceType) {
			if len(names) == launchTypes {
				return true
			}
			names = append(names, o.InstanceType)
		}
		return false
	})
	reqs := p.base.And(corev1.LabelInstanceTypeStable, In(names...))
	reqs.settle()
	p.unstateTenancy(reqs)
	out := PlannedNode{
		NodePool: p.name, NodeClass: p.class, Requirements: reqs, Options: options,
		Requests: w.axis.list(w.overhead(p.taints, reqs)), PricePerHour: options[0].PricePerHour,
	}
	if w.snapshot.Settings.MinValuesPolicy == "BestEffort" {
		out.LowerMinValues(func(o Option, key string) (string, bool) { return typeLabel(types, o.InstanceType, key) })
	}
	return out, true
}

// typeLabel is a label of an instance type.
func typeLabel(types []Type, name, key string) (string, bool) {
	i := slices.IndexFunc(types, func(t Type) bool { return t.Name == name })
	value, ok := types[i].Labels[key]
	return value, ok
}

// buyable are the offers of all types, exotic or not, that suit a pool.
func buyable(types []Type, base Requirements, exotic bool) []Option {
	var out []Option
	for i := range types {
		t := &types[i]
		if t.Exotic != exotic || !base.allows(t.Labels) {
			continue
		}
		for j := range t.Offers {
			if o := &t.Offers[j]; o.sane() && o.Reservation == "" && base.buys(o.Option) {
				out = append(out, o.Option)
			}
		}
	}
	return out
}
