package candidate

import (
	"math"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// NodeCost is what disturbing a node costs beside its pods (B150).
const NodeCost = 1.0

const (
	// evictionMost bounds what one pod costs, either way (B150).
	evictionMost = 10.0
	// deletionUnit and priorityUnit are how much of pod-deletion-cost and of priority
	// weigh as much as one ordinary pod (B150).
	deletionUnit = 1 << 27
	priorityUnit = 1 << 25
)

// EvictionCost is what moving one pod of the class costs, in ordinary pods; below
// zero for those that ask to go first (B150). A deletion cost that is no number
// counts for nothing.
func EvictionCost(spec *scheduling.PodSpec) float64 {
	cost := 1.0
	if deletion, err := strconv.ParseFloat(spec.DeletionCost, 64); err == nil && !math.IsNaN(deletion) {
		cost += deletion / deletionUnit
	}
	cost += float64(spec.Priority) / priorityUnit
	return min(max(cost, -evictionMost), evictionMost)
}

// Cost is what disturbing the node costs: itself, and each pod that costs anything
// to move (B150). A node that costs no more than itself counts as empty (B149).
func Cost(n *scheduling.Node) float64 {
	cost := NodeCost
	for i := range n.Pods {
		if each := EvictionCost(&n.Pods[i].Spec); each > 0 {
			cost += each * float64(Staying(&n.Pods[i]))
		}
	}
	return cost
}

// pods is how many pods would have to move.
func pods(n *scheduling.Node) int {
	count := 0
	for i := range n.Pods {
		count += Staying(&n.Pods[i])
	}
	return count
}

// Staying is how many pods of the class are not going anyway.
func Staying(class *scheduling.PodClass) int {
	count := 0
	for i := range class.Pods {
		if !class.Pods[i].Going {
			count++
		}
	}
	return count
}

// lifetime is the part of the node's life that is left, from 0 to 1 (B150).
func lifetime(n *scheduling.Node, now time.Time) float64 {
	whole := n.Expires.Sub(n.Created)
	if n.Expires.IsZero() || whole <= 0 {
		return 1
	}
	return min(max(n.Expires.Sub(now).Seconds()/whole.Seconds(), 0), 1)
}
