package planning

import (
	"strconv"
	"time"
)

const (
	// maxEvictionCost bounds the cost of one pod in both directions.
	maxEvictionCost = 10.0
	// annotatedUnit and priorityUnit are the annotated cost and the priority that cost as much as one
	// ordinary pod.
	annotatedUnit = 1 << 27
	priorityUnit  = 1 << 25
)

// EvictionCost returns the cost of moving a pod, from the cost that its annotation states
// (podspec.CostAnnotation) and its priority; an ordinary pod costs 1. The cost is negative for pods
// that should be evicted first. An annotated cost that is not an int32 is ignored.
func EvictionCost(annotated string, priority int32) float64 {
	cost := 1.0
	if stated, err := strconv.ParseInt(annotated, 10, 32); err == nil {
		cost += float64(stated) / annotatedUnit
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
