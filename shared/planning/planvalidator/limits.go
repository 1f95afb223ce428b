package planvalidator

import (
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// limitNodes is the limit on the number of nodes.
const limitNodes corev1.ResourceName = "nodes"

// limitsAnnotation is strict if nodes that are being removed count against the limits until they are gone.
const limitsAnnotation = "joist.sh/limits"

// checkLimits checks the limits of each NodePool. A launch counts as its largest option.
func (w *finalCluster) checkLimits(out *report) {
	for i := range w.scenario.NodePools {
		pool := &w.scenario.NodePools[i]
		counted := w.nodes
		if pool.Metadata.Annotations[limitsAnnotation] == "strict" {
			counted = slices.Concat(w.nodes, w.removing)
		}
		used, launches := corev1.ResourceList{}, 0
		for _, n := range counted {
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
		if t := &w.scenario.InstanceTypes[i]; n.mayBe(t.Name) {
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

// mayBe reports whether the launch of a planned node may choose the type.
func (n *node) mayBe(instanceType string) bool {
	return slices.Contains(n.plan.OptionTypes, instanceType) ||
		slices.ContainsFunc(n.plan.Offerings, func(o LaunchOffering) bool { return o.InstanceType == instanceType })
}

// priceLimitAnnotation is the largest price of a NodePool's nodes together, in US dollars per hour.
const priceLimitAnnotation = "joist.sh/price-limit"

// checkPriceLimits checks the price limits of the NodePools and of the cluster. A launch counts as its most expensive
// offering. A limit that is no number permits no launch.
func (w *finalCluster) checkPriceLimits(out *report) {
	had, added := w.existingPrice(nil), 0.0
	for i := range w.scenario.NodePools {
		pool := &w.scenario.NodePools[i]
		has, more := w.existingPrice(pool), 0.0
		for _, n := range w.nodes {
			if n.pool == pool && n.plan != nil {
				more += w.highestPrice(n)
			}
		}
		added += more
		text, limited := pool.Metadata.Annotations[priceLimitAnnotation]
		if limit, err := strconv.ParseFloat(text, 64); limited && more > 0 && (err != nil || has+more > limit+priceTolerance) {
			out.add(PriceLimits, "pool "+pool.Metadata.Name, "its nodes cost %f and may cost %f; the limit is %q", has, has+more, text)
		}
	}
	if limit := w.scenario.PriceLimit; limit != nil && added > 0 && had+added > *limit+priceTolerance {
		out.add(PriceLimits, "the cluster", "its nodes cost %f and may cost %f; the limit is %f", had, had+added, *limit)
	}
}

// existingPrice returns the price of the existing nodes of a NodePool, or of all for nil.
func (w *finalCluster) existingPrice(pool *NodePool) (sum float64) {
	for _, n := range slices.Concat(w.nodes, w.removing) {
		if n.plan == nil && (pool == nil || n.pool == pool) {
			sum += n.offering.Price
		}
	}
	return sum
}

// remainingPrice returns what existing nodes leave of the price limits of a NodePool and of the cluster; infinity without a limit.
func (w *finalCluster) remainingPrice(pool *NodePool) float64 {
	left := math.Inf(1)
	if w.scenario.PriceLimit != nil {
		left = *w.scenario.PriceLimit - w.existingPrice(nil)
	}
	if text, limited := pool.Metadata.Annotations[priceLimitAnnotation]; limited {
		limit, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return math.Inf(-1)
		}
		left = min(left, limit-w.existingPrice(pool))
	}
	return left
}

// highestPrice returns the price of the most expensive offering that the launch may choose.
func (w *finalCluster) highestPrice(n *node) float64 {
	most := n.offering.Price
	for _, o := range n.plan.Offerings {
		if p, ok := w.findOption(n.plan.NodePool, o.InstanceType, o.Zone, o.CapacityType); ok {
			most = max(most, p.offering.Price)
		}
	}
	return most
}
