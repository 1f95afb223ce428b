package scheduling

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// quota is what is left of a pool's limits (B013). It is counted pessimistically:
// a planned node counts as the largest type that it may still become (B104).
type quota struct {
	// left is math.MaxInt64 where there is no limit.
	left  amounts
	nodes int64
}

func newQuota(np *karpenter.NodePool, s Snapshot, a axis) quota {
	q := quota{left: make(amounts, len(a.names)), nodes: math.MaxInt64}
	for i, name := range a.names {
		q.left[i] = limit(np, name)
	}
	q.nodes = limit(np, karpenter.ResourceNodes)
	for _, node := range s.Nodes {
		if node.NodePool == np.Name {
			q = q.without(a.of(node.counted()))
		}
	}
	return q
}

func limit(np *karpenter.NodePool, name corev1.ResourceName) int64 {
	if bound, ok := np.Spec.Limits[name]; ok {
		return integer(name, bound)
	}
	return math.MaxInt64
}

// counted is what the node takes from its pool's limits. A claim whose type is
// not known has the ceiling as its capacity; without one, what it was planned
// for is the least that it can be.
func (n Node) counted() corev1.ResourceList {
	if len(n.Capacity) > 0 {
		return n.Capacity
	}
	return n.Allocatable
}

// without takes one node off.
func (q quota) without(capacity amounts) quota {
	left := make(amounts, len(q.left))
	for i := range left {
		if left[i] = q.left[i]; left[i] != math.MaxInt64 {
			left[i] -= capacity[i]
		}
	}
	q.left = left
	if q.nodes != math.MaxInt64 {
		q.nodes--
	}
	return q
}

// refund gives back the difference when a planned node's ceiling fell.
func (q quota) refund(was, now amounts) quota {
	left := make(amounts, len(q.left))
	for i := range left {
		if left[i] = q.left[i]; left[i] != math.MaxInt64 {
			left[i] += was[i] - now[i]
		}
	}
	q.left = left
	return q
}

// holds reports whether one more node of that capacity stays inside the limits.
func (q quota) holds(capacity amounts) bool {
	if q.nodes <= 0 {
		return false
	}
	for i := range capacity {
		if q.left[i] != math.MaxInt64 && capacity[i] > q.left[i] {
			return false
		}
	}
	return true
}
