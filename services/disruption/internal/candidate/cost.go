package candidate

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// NodeCost is the disruption cost of a node without its pods.
const NodeCost = 1.0

// EvictionCost returns the cost of moving one pod of the class, where an ordinary pod costs 1.
func EvictionCost(spec *planning.PodSpec) float64 {
	return planning.EvictionCost(spec.DeletionCost, spec.Priority)
}

// DisruptionCost returns the disruption cost of the node: NodeCost, plus the cost of each pod that
// has a positive one. A node that costs no more than NodeCost counts as empty.
func DisruptionCost(n *planning.Node) float64 {
	cost := NodeCost
	for i := range n.Pods {
		if each := EvictionCost(&n.Pods[i].Spec); each > 0 {
			cost += each * float64(len(n.Pods[i].ReschedulablePods()))
		}
	}
	return cost
}

// countPods returns how many pods would have to move.
func countPods(n *planning.Node) int {
	count := 0
	for i := range n.Pods {
		count += len(n.Pods[i].ReschedulablePods())
	}
	return count
}

// remainingLifetime returns the remaining part of the node's life, from 0 to 1.
func remainingLifetime(n *planning.Node, now time.Time) float64 {
	return planning.LifetimeRemaining(n.Created, n.ExpiresAt, now)
}
