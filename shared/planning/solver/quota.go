package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// quota is what is left of a pool's limits. A node that is to come counts
// as the largest type that it may still become. A node that leaves counts only
// for its price, unless the pool counts nodes until they are gone.
func (w *world) quota(np *karpenter.NodePool) packing.Pool {
	a, s := w.axis, w.snapshot
	out := packing.Pool{Left: make([]int64, len(a.names)), Nodes: limit(np, karpenter.ResourceNodes)}
	for i, name := range a.names {
		out.Left[i] = limit(np, name)
	}
	if w.money != nil {
		out.Left[w.money.at] = w.money.limit(np)
	}
	for i := range s.Nodes {
		if node := &s.Nodes[i]; node.NodePool == np.Name {
			out.Count(w.counts(node))
			if node.IsBeingRemoved() && !planning.CountsNodesBeingRemoved(np) {
				out.Release(w.released(node))
			}
		}
	}
	if w.money != nil {
		out.Within = w.money.common // It has counted all nodes already.
	}
	return out
}

// counts is what the node takes from its pool's limits.
func (w *world) counts(n *planning.Node) amounts {
	out := w.axis.of(n.CapacityInLimits())
	if w.money != nil {
		out[w.money.at], _ = w.money.billed(n)
	}
	return out
}

// released is what a node gives back to its pool's limits when it leaves: everything
// but its price, which counts until the node is gone.
func (w *world) released(n *planning.Node) amounts {
	out := w.counts(n)
	if w.money != nil {
		out[w.money.at] = 0
	}
	return out
}

// releasing are the quotas of the pools once the nodes, by their places in the world,
// leave as well.
func (w *world) releasing(nodes []int) []packing.Pool {
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
			pools[k].Left, cloned[k] = slices.Clone(pools[k].Left), true
		}
		pools[k].Release(w.released(node))
	}
	return pools
}

func limit(np *karpenter.NodePool, name corev1.ResourceName) int64 {
	if bound, ok := np.Spec.Limits[name]; ok {
		return integer(name, bound)
	}
	return packing.Unlimited
}
