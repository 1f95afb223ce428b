package planvalidator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// limitNodes is the limit on the number of nodes.
const limitNodes corev1.ResourceName = "nodes"

// checkLimits checks the limits of each NodePool. A launch counts as its largest option.
func (w *finalCluster) checkLimits(out *report) {
	for i := range w.scenario.NodePools {
		pool := &w.scenario.NodePools[i]
		used, launches := corev1.ResourceList{}, 0
		for _, n := range w.nodes {
			if n.pool == pool {
				addResources(used, w.countedResources(n))
				addResources(used, corev1.ResourceList{limitNodes: resource.MustParse("1")})
			}
			if n.pool == pool && n.plan != nil {
				launches++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
			limit, have := pool.Spec.Limits[name], used[name]
			if launches > 0 && have.Cmp(limit) > 0 && w.addsResource(pool, name) {
				out.add(Limits, "pool "+pool.Metadata.Name, "its nodes may use %s of %s; the limit is %s", have.String(), name, limit.String())
			}
		}
	}
}

// countedResources returns what a node counts against the limits of its NodePool.
func (w *finalCluster) countedResources(n *node) corev1.ResourceList {
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

// addsResource reports whether a launch adds to a resource of a NodePool. Otherwise the plan cannot exceed the
// limit.
func (w *finalCluster) addsResource(pool *NodePool, name corev1.ResourceName) bool {
	return name == limitNodes || slices.ContainsFunc(w.nodes, func(n *node) bool {
		q := w.countedResources(n)[name]
		return n.pool == pool && n.plan != nil && q.Sign() > 0
	})
}
