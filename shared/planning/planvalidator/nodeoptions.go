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

// addHolder records whether a pod that must not share its host may run there.
func (s *launchSite) addHolder(may bool) {
	if may {
		s.hosts = 1
	}
}

// launchSites returns the available offerings and the existing nodes.
func (w *finalCluster) launchSites(names []corev1.ResourceName) []launchSite {
	var all []launchSite
	for i := range w.offered {
		p := &w.offered[i]
		if !p.offering.Available {
			continue
		}
		one := launchSite{taints: p.pool.Spec.Template.Spec.Taints}
		one.room, one.price = toVector(w.freeResources(i), names), p.offering.Price
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
		one.room, one.exists = toVector(subtractResources(n.machine.allocatable(), sumRequests(n.pods, n.daemons)), names), true
		all = append(all, one)
	}
	return slices.DeleteFunc(all, func(s launchSite) bool { return slices.ContainsFunc(s.room, func(q float64) bool { return q < 0 }) })
}

// cheapestOptions keeps the cheapest of equal offerings, merges equal nodes, and drops
// options that no pod can use.
func cheapestOptions(sites []launchSite) []nodeOption {
	index := map[string]int{}
	var out []nodeOption
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
			out = append(out, s.nodeOption)
		case s.exists:
			out[at].hosts += s.hosts
			for r, room := range s.room {
				out[at].room[r] += room
			}
		case s.price < out[at].price:
			out[at] = s.nodeOption
		}
	}
	return out
}
