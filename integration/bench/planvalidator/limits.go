package planvalidator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// limitNodes is the limit on the number of nodes.
const limitNodes corev1.ResourceName = "nodes"

// limits adds up what the nodes of each pool have. A launch counts as the largest
// of its options, because any of them may come.
func (w *world) limits(out *report) {
	for i := range w.scenario.NodePools {
		pool := &w.scenario.NodePools[i]
		used, launches := corev1.ResourceList{}, 0
		for _, n := range w.nodes {
			if n.pool == pool {
				add(used, w.counts(n))
				add(used, corev1.ResourceList{limitNodes: resource.MustParse("1")})
			}
			if n.pool == pool && n.plan != nil {
				launches++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
			limit, have := pool.Spec.Limits[name], used[name]
			if launches > 0 && have.Cmp(limit) > 0 && w.adds(pool, name) {
				out.add(Limits, "pool "+pool.Metadata.Name, "its nodes may have %s of %s, and its limit is %s", have.String(), name, limit.String())
			}
		}
	}
}

// counts is what a node counts against its pool's limits.
func (w *world) counts(n *node) corev1.ResourceList {
	most := maps.Clone(n.machine.Capacity)
	if n.plan == nil {
		return most
	}
	for i := range w.scenario.InstanceTypes {
		if t := &w.scenario.InstanceTypes[i]; slices.Contains(n.plan.OptionTypes, t.Name) {
			for name, q := range t.Capacity {
				if was := most[name]; q.Cmp(was) > 0 {
					most[name] = q
				}
			}
		}
	}
	return most
}

// adds reports whether a launch adds to a resource of a pool: one that adds
// nothing cannot break a limit that was broken before.
func (w *world) adds(pool *NodePool, name corev1.ResourceName) bool {
	return name == limitNodes || slices.ContainsFunc(w.nodes, func(n *node) bool {
		q := w.counts(n)[name]
		return n.pool == pool && n.plan != nil && q.Sign() > 0
	})
}
