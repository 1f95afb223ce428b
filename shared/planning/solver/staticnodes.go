package solver

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// planStaticNodes returns the nodes that static NodePools lack. They hold no pods and have the
// cheapest types that the NodePool allows. If a price limit is short, nodes for pods come first.
func (w *state) planStaticNodes(stock instancetypes.InstanceTypes, shortfalls []planning.Shortfall, affinityRules []planning.PlannedNode) []planning.PlannedNode {
	var out []planning.PlannedNode
	for _, short := range shortfalls {
		i := slices.IndexFunc(w.snapshot.NodePools, func(np karpenter.NodePool) bool { return np.Name == short.NodePool })
		p := w.newPool(&w.snapshot.NodePools[i], stock, nil)
		if p.refusal.Rule != "" {
			continue // It is not ready; its own conditions say why.
		}
		node, ok := w.newStaticNode(p, stock.TypesForPool(p.name, p.class))
		if !ok {
			continue
		}
		count := short.Count
		if p.priced {
			if node.Offerings, count = filterAffordable(node.Offerings, count, w.priceBudget(p, affinityRules, out)); count == 0 {
				continue
			}
		}
		for range count {
			out = append(out, node)
		}
	}
	return out
}

// newStaticNode returns the plan of one more node of a static pool; false if no allowed type can be
// bought.
func (w *state) newStaticNode(p *pool, types []instancetypes.Type) (planning.PlannedNode, bool) {
	options := listBuyable(types, p.requirements, func(t *instancetypes.Type, o *instancetypes.InstanceOffering) bool {
		return !t.Exotic && o.Reservation == ""
	})
	if len(options) == 0 { // The pool allows only exotic types.
		options = listBuyable(types, p.requirements, func(_ *instancetypes.Type, o *instancetypes.InstanceOffering) bool { return o.Reservation == "" })
	}
	if len(options) == 0 {
		return planning.PlannedNode{}, false
	}
	var names []string
	options = slices.DeleteFunc(options, func(o planning.PricedOffering) bool {
		if !slices.Contains(names, o.InstanceType) {
			if len(names) == maxLaunchTypes {
				return true
			}
			names = append(names, o.InstanceType)
		}
		return false
	})
	reqs := p.requirements.WithRequirement(corev1.LabelInstanceTypeStable, planning.In(names...))
	reqs.FixCustomLabels()
	p.dropTenancy(reqs)
	out := planning.PlannedNode{
		NodePool: p.name, NodeClass: p.class, Requirements: reqs, Offerings: options,
		Requests: w.resources.toResourceList(w.daemonOverhead(p.taints, reqs)), PricePerHour: options[0].PricePerHour,
	}
	if w.snapshot.Settings.MinValuesPolicy == "BestEffort" {
		out.LowerMinValues(func(o planning.PricedOffering, key string) (string, bool) {
			return findTypeLabel(types, o.InstanceType, key)
		})
	}
	return out, true
}

// findTypeLabel returns a label of an instance type.
func findTypeLabel(types []instancetypes.Type, name, key string) (string, bool) {
	i := slices.IndexFunc(types, func(t instancetypes.Type) bool { return t.Name == name })
	value, ok := types[i].Labels[key]
	return value, ok
}

// listBuyable returns the accepted offerings that the requirements allow and that can be bought, the
// cheapest first.
func listBuyable(types []instancetypes.Type, reqs planning.Requirements, accepts func(*instancetypes.Type, *instancetypes.InstanceOffering) bool) []planning.PricedOffering {
	var out []planning.PricedOffering
	for i := range types {
		t := &types[i]
		if !reqs.AllowsType(t.Labels) {
			continue
		}
		for j := range t.Offerings {
			if o := &t.Offerings[j]; o.IsBuyable() && reqs.AllowsOffering(o.PricedOffering) && accepts(t, o) {
				out = append(out, o.PricedOffering)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y planning.PricedOffering) int { return cmp.Compare(x.PricePerHour, y.PricePerHour) })
	return out
}
