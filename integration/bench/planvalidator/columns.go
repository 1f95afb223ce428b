package planvalidator

import (
	"fmt"

	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// site is a column with what decides on whether a pod may be there.
type site struct {
	column
	taints []corev1.Taint
	// metas are the ways in which a node there may be labelled.
	metas func(of *pod) []*corev1.Node
}

// holds notes that a pod of those that share no host may be there.
func (s *site) holds(may bool) {
	if may {
		s.hosts = 1
	}
}

// sites are the places that are available, and the nodes that exist.
func (w *world) sites(names []corev1.ResourceName) []site {
	var all []site
	for i := range w.offered {
		p := &w.offered[i]
		if !p.offering.Available {
			continue
		}
		one := site{taints: p.pool.Spec.Template.Spec.Taints}
		one.room, one.price = vector(w.room(i), names), p.offering.Price
		fixed := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: p.fixed}}
		one.metas = func(of *pod) []*corev1.Node {
			if len(p.open) == 0 {
				return []*corev1.Node{fixed}
			}
			var metas []*corev1.Node
			for _, set := range p.labelings([]*corev1.Pod{of.Pod}) {
				metas = append(metas, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: set}})
			}
			return metas
		}
		all = append(all, one)
	}
	for _, n := range w.nodes {
		one := site{taints: n.taints, metas: func(*pod) []*corev1.Node { return []*corev1.Node{n.meta} }}
		one.room, one.exists = vector(less(n.machine.allocatable(), demand(n.pods, n.daemons)), names), true
		all = append(all, one)
	}
	return slices.DeleteFunc(all, func(s site) bool { return slices.ContainsFunc(s.room, func(q float64) bool { return q < 0 }) })
}

// cheapest keeps the cheapest of the offerings that are otherwise equal, adds up
// the nodes that serve the same, and drops what serves nobody.
func cheapest(sites []site) []column {
	index := map[string]int{}
	var out []column
	for _, s := range sites {
		if !slices.Contains(s.serves, true) {
			continue
		}
		id := fmt.Sprint(s.room, s.serves, s.hosts)
		if s.exists {
			id = fmt.Sprint("exists", s.serves)
		}
		at, seen := index[id]
		switch {
		case !seen:
			index[id] = len(out)
			out = append(out, s.column)
		case s.exists:
			out[at].hosts += s.hosts
			for r, room := range s.room {
				out[at].room[r] += room
			}
		case s.price < out[at].price:
			out[at] = s.column
		}
	}
	return out
}
