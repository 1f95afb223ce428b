package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling/packing"
)

// quota is what is left of a pool's limits (B013). A node that is to come counts
// as the largest type that it may still become (B104).
func quota(np *karpenter.NodePool, s *Snapshot, a axis) packing.Pool {
	out := packing.Pool{Left: make([]int64, len(a.names)), Nodes: limit(np, karpenter.ResourceNodes)}
	for i, name := range a.names {
		out.Left[i] = limit(np, name)
	}
	for i := range s.Nodes {
		if node := &s.Nodes[i]; node.NodePool == np.Name {
			out.Count(a.of(node.counted()))
		}
	}
	return out
}

func limit(np *karpenter.NodePool, name corev1.ResourceName) int64 {
	if bound, ok := np.Spec.Limits[name]; ok {
		return integer(name, bound)
	}
	return packing.Unlimited
}

// counted is what the node takes from its pool's limits. A claim whose type is
// not known has the ceiling as its capacity; without one, what it was planned
// for is the least that it can be.
func (n *Node) counted() corev1.ResourceList {
	if len(n.Capacity) > 0 {
		return n.Capacity
	}
	return n.Allocatable
}
