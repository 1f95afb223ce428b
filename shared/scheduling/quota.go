package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling/packing"
)

// quota is what is left of a pool's limits (B013). A node that is to come counts
// as the largest type that it may still become (B104).
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
		}
	}
	if w.money != nil {
		out.Within = w.money.common // It has counted all nodes already.
	}
	return out
}

// counts is what the node takes from its pool's limits.
func (w *world) counts(n *Node) amounts {
	out := w.axis.of(n.counted())
	if w.money != nil {
		out[w.money.at], _ = w.money.billed(n)
	}
	return out
}

func limit(np *karpenter.NodePool, name corev1.ResourceName) int64 {
	if bound, ok := np.Spec.Limits[name]; ok {
		return integer(name, bound)
	}
	return packing.Unlimited
}

// counted is the capacity that counts in the pool's limits. A claim whose type is
// not known has the ceiling as its capacity; without one, what it was planned
// for is the least that it can be.
func (n *Node) counted() corev1.ResourceList {
	if len(n.Capacity) > 0 {
		return n.Capacity
	}
	return n.Allocatable
}
