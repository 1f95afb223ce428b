package planningtest

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// checkPriceLimits counts each planned node with its most expensive offering. It uses dollars, so that
// it does not repeat the planner's rounding.
func (c *checker) checkPriceLimits() {
	const noise = 1e-6
	all, added := 0.0, 0.0
	for i := range c.batch.Snapshot.Nodes {
		if node := &c.batch.Snapshot.Nodes[i]; node.Claim != "" {
			all += c.priceOfNode(node)
		}
	}
	for i := range c.batch.Snapshot.NodePools {
		pool := &c.batch.Snapshot.NodePools[i]
		has, more := c.sumPrices(pool)
		added += more
		text, limited := pool.Annotations[policy.PriceLimit]
		limit, err := strconv.ParseFloat(text, 64)
		if limited && more > 0 && (err != nil || has+more > limit+noise) {
			c.failf("NodePool %s costs %v and may cost %v, and its limit is %q", pool.Name, has, has+more, text)
		}
	}
	if limit := c.batch.Snapshot.Settings.PriceLimit; limit != nil && added > 0 && all+added > *limit+noise {
		c.failf("the nodes cost %v and may cost %v, and the cluster's limit is %v", all, all+added, *limit)
	}
}

// sumPrices returns the price of a pool's nodes, and the maximum price of its planned nodes.
func (c *checker) sumPrices(pool *karpenter.NodePool) (has, more float64) {
	for i := range c.batch.Snapshot.Nodes {
		if node := &c.batch.Snapshot.Nodes[i]; node.NodePool == pool.Name {
			has += c.priceOfNode(node)
		}
	}
	for i := range c.result.Nodes {
		if n := &c.result.Nodes[i]; n.NodePool == pool.Name {
			dearest := 0.0
			for _, o := range n.Offerings {
				dearest = math.Max(dearest, o.PricePerHour)
			}
			more += dearest
		}
	}
	return has, more
}

// priceOfNode returns the price that a node records, or else the catalogue price of its offering.
func (c *checker) priceOfNode(n *planning.Node) float64 {
	if n.PricePerHour > 0 {
		return n.PricePerHour
	}
	if price, ok := n.Capacity[planning.PriceResource]; ok {
		return price.AsApproximateFloat64() / 1e6
	}
	t, _ := c.cat.Find(n.Labels[corev1.LabelInstanceTypeStable])
	dearest := 0.0
	for _, o := range t.Offerings {
		if o.HasPrice() && o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] {
			return o.PricePerHour
		}
		dearest = math.Max(dearest, o.PricePerHour)
	}
	return dearest
}
