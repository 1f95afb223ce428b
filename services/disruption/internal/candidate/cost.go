package candidate

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// NodeCost is what disturbing a node costs beside its pods.
const NodeCost = 1.0

// EvictionCost is what moving one pod of the class costs, in ordinary pods.
func EvictionCost(spec *planning.PodSpec) float64 {
	return planning.EvictionCost(spec.DeletionCost, spec.Priority)
}

// DisruptionCost is what disturbing the node costs: itself, and each pod that costs anything
// to move. A node that costs no more than itself counts as empty.
func DisruptionCost(n *planning.Node) float64 {
	cost := NodeCost
	for i := range n.Pods {
		if each := EvictionCost(&n.Pods[i].Spec); each > 0 {
			cost += each * float64(len(n.Pods[i].Rescheduled()))
		}
	}
	return cost
}

// countPods is how many pods would have to move.
func countPods(n *planning.Node) int {
	count := 0
	for i := range n.Pods {
		count += len(n.Pods[i].Rescheduled())
	}
	return count
}

// remainingLifetime is the part of the node's life that is left, from 0 to 1.
func remainingLifetime(n *planning.Node, now time.Time) float64 {
	return planning.LifeLeft(n.Created, n.Expires, now)
}
