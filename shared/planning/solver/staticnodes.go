package solver

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// planStaticNodes returns the nodes that static NodePools lack, after the nodes planned for pods. They
// hold no pods and have the cheapest types that the NodePool allows. If a price limit is short, nodes
// for pods come first.
func (w *state) planStaticNodes(stock instancetypes.InstanceTypes, shortfalls []planning.Shortfall, planned []planning.PlannedNode) []planning.PlannedNode {
	var out []planning.PlannedNode
	for _, short := range shortfalls {
		p := w.newPool(w.findNodePool(short.NodePool), stock, nil)
		if p.refusal.Rule != "" {
			continue // It is not ready; its own conditions say why.
		}
		for left := short.Count; left > 0; {
			node, most := w.newStaticNode(p, stock.TypesForPool(p.name, p.class), w.countUsedReservations(planned, out))
			count := min(left, most)
			if count > 0 && p.priced {
				node.Offerings, count = filterAffordable(node.Offerings, count, w.priceBudget(p, planned, out))
			}
			if count == 0 {
				break
			}
			for range count {
				out = append(out, node)
			}
			left -= count
		}
	}
	return out
}

func (w *state) findNodePool(name string) *karpenter.NodePool {
	i := slices.IndexFunc(w.snapshot.NodePools, func(np karpenter.NodePool) bool { return np.Name == name })
	return &w.snapshot.NodePools[i]
}

// newStaticNode returns the plan of one more node of a static pool, and how many such nodes can be
// launched; 0 if no allowed type can be bought. Reservations come first.
func (w *state) newStaticNode(p *pool, types []instancetypes.Type, used map[string]int) (planning.PlannedNode, int) {
	reqs, options, most := p.requirements, []planning.PricedOffering(nil), math.MaxInt
	if o := w.findFreeReservation(p, types, used); o != nil {
		options, most = []planning.PricedOffering{o.PricedOffering}, o.ReservationCapacity-used[o.Reservation]
		reqs = reqs.WithRequirement(karpenter.CapacityTypeLabelKey, planning.In(karpenter.CapacityTypeReserved)).
			WithRequirement(karpenter.LabelCapacityReservationID, planning.In(o.Reservation))
	} else if options = listStaticOfferings(p, types); len(options) == 0 {
		return planning.PlannedNode{}, 0
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
	reqs = reqs.WithRequirement(corev1.LabelInstanceTypeStable, planning.In(names...))
	reqs.FixCustomLabels()
	p.dropTenancy(reqs)
	p.dropPartition(reqs)
	out := planning.PlannedNode{
		NodePool: p.name, NodeClass: p.class, Requirements: reqs, Offerings: options,
		Requests: w.resources.toResourceList(w.daemonOverhead(p.taints, reqs)), PricePerHour: options[0].PricePerHour,
	}
	if w.snapshot.Settings.MinValuesPolicy == "BestEffort" {
		out.LowerMinValues(func(o planning.PricedOffering, key string) (string, bool) {
			return findTypeLabel(types, o.InstanceType, key)
		})
	}
	return out, most
}

// listStaticOfferings returns the offerings without reservation for a node of a static pool. Exotic
// types are used only if the pool allows no others.
func listStaticOfferings(p *pool, types []instancetypes.Type) []planning.PricedOffering {
	options := listBuyable(types, p.requirements, func(t *instancetypes.Type, o *instancetypes.InstanceOffering) bool {
		return !t.Exotic && o.Reservation == ""
	})
	if len(options) == 0 {
		options = listBuyable(types, p.requirements, func(_ *instancetypes.Type, o *instancetypes.InstanceOffering) bool { return o.Reservation == "" })
	}
	return options
}

// findFreeReservation returns the cheapest reservation with free capacity that a node of the static pool
// may use; nil without one. A reservation has one instance type, so minValues exclude it.
func (w *state) findFreeReservation(p *pool, types []instancetypes.Type, used map[string]int) *instancetypes.InstanceOffering {
	if p.requirements.HasMinValues() && w.snapshot.Settings.MinValuesPolicy != "BestEffort" {
		return nil
	}
	var best *instancetypes.InstanceOffering
	visitOfferings(p, types, func(o *instancetypes.InstanceOffering) {
		if o.Reservation != "" && o.IsBuyable() && o.ReservationCapacity > used[o.Reservation] && (best == nil || o.PricePerHour < best.PricePerHour) {
			best = o
		}
	})
	return best
}

// visitOfferings calls visit for each offering that the pool's requirements allow, even if it cannot be
// bought.
func visitOfferings(p *pool, types []instancetypes.Type, visit func(*instancetypes.InstanceOffering)) {
	for i := range types {
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			if p.requirements.AllowsType(mergeLabels(types[i].Labels, o.Labels)) && p.requirements.AllowsOffering(o.PricedOffering) {
				visit(o)
			}
		}
	}
}

// countUsedReservations returns how many planned nodes use each reservation.
func (w *state) countUsedReservations(lists ...[]planning.PlannedNode) map[string]int {
	out := map[string]int{}
	count := func(n *planning.PlannedNode) {
		if id, reserved := n.Requirements[karpenter.LabelCapacityReservationID].SingleValue(); reserved {
			out[id]++
		}
	}
	for _, list := range lists {
		for i := range list {
			count(&list[i])
		}
	}
	if w.removal != nil {
		for i := range w.removal.baseline.committed.nodes {
			count(&w.removal.baseline.committed.nodes[i].planned)
		}
	}
	return out
}

// FindFullReservations returns the reservations that nodes of a static NodePool may use and that are
// available, and whether its nodes may use nothing else and all of these are full. The NodePool itself
// need not be ready.
func (s *Simulation) FindFullReservations(nodePool string) (offered map[string]bool, full bool) {
	ready := *s.baseline.state.findNodePool(nodePool)
	ready.DeletionTimestamp = nil
	ready.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue}}
	p := s.baseline.state.newPool(&ready, s.baseline.types, nil)
	if p.refusal.Rule != "" {
		return nil, false
	}
	offered = map[string]bool{}
	reserved, others := false, false
	visitOfferings(p, s.baseline.types.TypesForPool(p.name, p.class), func(o *instancetypes.InstanceOffering) {
		switch {
		case o.Reservation == "" || o.IsBuyable():
			others = true
		default:
			reserved = true
			if o.IsFullReservation() {
				offered[o.Reservation] = true
			}
		}
	})
	return offered, reserved && !others
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
		for j := range t.Offerings {
			if o := &t.Offerings[j]; o.IsBuyable() && reqs.AllowsOffering(o.PricedOffering) && reqs.AllowsType(mergeLabels(t.Labels, o.Labels)) && accepts(t, o) {
				out = append(out, o.PricedOffering)
			}
		}
	}
	slices.SortStableFunc(out, func(x, y planning.PricedOffering) int { return cmp.Compare(x.PricePerHour, y.PricePerHour) })
	return out
}
