package planvalidator

import (
	"fmt"

	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// launchSite is a nodeOption with its possible labels.
type launchSite struct {
	nodeOption
	taints []corev1.Taint
	// metas are the nodes with the possible combinations of labels.
	metas func(of *pod) []*corev1.Node
}

// launchSites returns the available offerings and the existing nodes.
func (w *finalCluster) launchSites(of *linearProgram) []launchSite {
	var all []launchSite
	var limits []poolLimit
	limits, of.limits = w.poolLimits()
	for i := range w.offered {
		p := &w.offered[i]
		if !p.offering.Available {
			continue
		}
		one := launchSite{taints: p.pool.Spec.Template.Spec.Taints}
		one.room, one.price = of.roomOf(w.freeResources(i)), p.offering.Price
		one.usage = make([]float64, len(limits))
		for l, limit := range limits {
			if limit.pool == p.pool {
				one.usage[l] = toVector(withNode(p.machine.Capacity), []corev1.ResourceName{limit.name}, roundDown)[0]
			}
		}
		fixed := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: p.fixed}}
		one.metas = func(of *pod) []*corev1.Node {
			if len(p.open) == 0 {
				return []*corev1.Node{fixed}
			}
			var metas []*corev1.Node
			for _, set := range p.possibleLabels([]*corev1.Pod{of.Pod}) {
				metas = append(metas, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: set}})
			}
			return metas
		}
		all = append(all, one)
	}
	for _, n := range w.nodes {
		one := launchSite{taints: n.taints, metas: func(*pod) []*corev1.Node { return []*corev1.Node{n.meta} }}
		one.room, one.exists = of.roomOf(subtractResources(n.machine.allocatable(), sumRequests(n.pods, n.daemons))), true
		all = append(all, one)
	}
	return slices.DeleteFunc(all, func(s launchSite) bool { return slices.ContainsFunc(s.room, func(q float64) bool { return q < 0 }) })
}

// roomOf returns the dimensions of a node.
func (p *linearProgram) roomOf(free corev1.ResourceList) []float64 {
	room := toVector(free, p.resources, roundUp)
	for _, g := range p.groups {
		room = append(room, g.most)
	}
	return room
}

// cheapestOptions merges the existing nodes that serve the same pods, and drops offerings that another one
// replaces at no higher price.
func cheapestOptions(sites []launchSite) []nodeOption {
	index := map[string]int{}
	var out []nodeOption
	for _, s := range sites {
		if !slices.Contains(s.serves, true) {
			continue
		}
		id := fmt.Sprint(s.exists, s.serves)
		at, seen := index[id]
		switch {
		case !s.exists:
			if !slices.ContainsFunc(out, s.isReplaced) {
				out = slices.DeleteFunc(out, func(o nodeOption) bool { return o.isReplaced(s.nodeOption) })
				out = append(out, s.nodeOption)
			}
		case !seen:
			index[id] = len(out)
			out = append(out, s.nodeOption)
		default:
			for r, room := range s.room {
				out[at].room[r] += room
			}
		}
	}
	return out
}

// isReplaced reports whether another offering runs all that this one runs, costs no more and uses no more of
// the limits.
func (n nodeOption) isReplaced(by nodeOption) bool {
	for i, may := range n.serves {
		if may && !by.serves[i] {
			return false
		}
	}
	return !n.exists && !by.exists && by.price <= n.price && fitsInto(n.room, by.room) && fitsInto(by.usage, n.usage)
}
