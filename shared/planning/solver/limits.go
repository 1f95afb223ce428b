package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// remainingLimits returns the remaining limits of a NodePool. A node that is not launched counts as
// the largest type that it may become. A node that is being removed counts only for its price, unless
// the NodePool counts nodes until they are gone.
func (w *state) remainingLimits(np *karpenter.NodePool) packing.Pool {
	a, s := w.resources, w.snapshot
	out := packing.Pool{Quota: make([]int64, len(a.names)), Nodes: limitOf(np, karpenter.ResourceNodes)}
	for i, name := range a.names {
		out.Quota[i] = limitOf(np, name)
	}
	if w.priceLimits != nil {
		out.Quota[w.priceLimits.priceIndex] = w.priceLimits.poolLimit(np)
	}
	for i := range s.Nodes {
		if node := &s.Nodes[i]; node.NodePool == np.Name {
			out.SubtractNode(w.limitUsage(node))
			if node.IsBeingRemoved() && !planning.CountsNodesBeingRemoved(np) {
				out.AddBackNode(w.releasedUsage(node))
			}
		}
	}
	if w.priceLimits != nil {
		out.Shared = w.priceLimits.clusterLimit // It already counts all nodes.
	}
	return out
}

// limitUsage returns what a node counts for in its NodePool's limits.
func (w *state) limitUsage(n *planning.Node) amounts {
	out := w.resources.toAmounts(n.CapacityInLimits())
	if w.priceLimits != nil {
		out[w.priceLimits.priceIndex], _ = w.priceLimits.priceForLimits(n)
	}
	return out
}

// releasedUsage returns what a node releases from the limits when its removal begins: everything but
// its price, which counts until the node is gone.
func (w *state) releasedUsage(n *planning.Node) amounts {
	out := w.limitUsage(n)
	if w.priceLimits != nil {
		out[w.priceLimits.priceIndex] = 0
	}
	return out
}

// releaseLimits returns the remaining limits of the pools after the nodes, by state index, are
// removed too.
func (w *state) releaseLimits(nodes []int) []packing.Pool {
	pools, cloned := w.problem.Pools, map[int]bool{}
	for _, i := range nodes {
		node := w.nodes[i].node
		at := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == node.NodePool })
		if at < 0 || len(w.pools[at].object.Spec.Limits) == 0 || planning.CountsNodesBeingRemoved(w.pools[at].object) {
			continue
		}
		if len(cloned) == 0 {
			pools = slices.Clone(pools)
		}
		k := w.pools[at].index
		if !cloned[k] {
			pools[k].Quota, cloned[k] = slices.Clone(pools[k].Quota), true
		}
		pools[k].AddBackNode(w.releasedUsage(node))
	}
	return pools
}

func limitOf(np *karpenter.NodePool, name corev1.ResourceName) int64 {
	if bound, ok := np.Spec.Limits[name]; ok {
		return toInteger(name, bound)
	}
	return packing.Unlimited
}
