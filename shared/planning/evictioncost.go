package planning

import (
	"math"
	"strconv"
	"time"
)

const (
	// maxEvictionCost bounds what one pod costs, either way.
	maxEvictionCost = 10.0
	// deletionUnit and priorityUnit are how much of pod-deletion-cost and of priority
	// weigh as much as one ordinary pod.
	deletionUnit = 1 << 27
	priorityUnit = 1 << 25
)

// EvictionCost is the cost of moving one pod in units of an ordinary pod, from its
// pod-deletion-cost and its priority. It is below zero for pods that are to be evicted
// first. A deletion cost that is not a number is ignored.
func EvictionCost(deletionCost string, priority int32) float64 {
	cost := 1.0
	if deletion, err := strconv.ParseFloat(deletionCost, 64); err == nil && !math.IsNaN(deletion) {
		cost += deletion / deletionUnit
	}
	cost += float64(priority) / priorityUnit
	return min(max(cost, -maxEvictionCost), maxEvictionCost)
}

// LifetimeRemaining is the part of a node's life that is left, from 0 to 1; 1 for one that
// does not expire.
func LifetimeRemaining(created, expires, now time.Time) float64 {
	whole := expires.Sub(created)
	if expires.IsZero() || whole <= 0 {
		return 1
	}
	return min(max(expires.Sub(now).Seconds()/whole.Seconds(), 0), 1)
}
