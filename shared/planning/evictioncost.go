package planning

import (
	"math"
	"strconv"
	"time"
)

const (
	// maxEvictionCost bounds the cost of one pod in both directions.
	maxEvictionCost = 10.0
	// deletionUnit and priorityUnit are the pod-deletion-cost and the priority that cost as much as
	// one ordinary pod.
	deletionUnit = 1 << 27
	priorityUnit = 1 << 25
)

// EvictionCost returns the cost of moving a pod, from its pod-deletion-cost and its priority; an
// ordinary pod costs 1. The cost is negative for pods that should be evicted first. An invalid
// deletion cost is ignored.
func EvictionCost(deletionCost string, priority int32) float64 {
	cost := 1.0
	if deletion, err := strconv.ParseFloat(deletionCost, 64); err == nil && !math.IsNaN(deletion) {
		cost += deletion / deletionUnit
	}
	cost += float64(priority) / priorityUnit
	return min(max(cost, -maxEvictionCost), maxEvictionCost)
}

// LifetimeRemaining returns the fraction of a node's lifetime that is left, from 0 to 1; 1 for a node
// that does not expire.
func LifetimeRemaining(created, expires, now time.Time) float64 {
	whole := expires.Sub(created)
	if expires.IsZero() || whole <= 0 {
		return 1
	}
	return min(max(expires.Sub(now).Seconds()/whole.Seconds(), 0), 1)
}
