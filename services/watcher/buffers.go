package watcher

import (
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// bufferInterval is the minimum time between batches for buffers whose capacity pods have used.
// Otherwise it is inflight.ReplanInterval, which is Karpenter's 30 s.
const bufferInterval = 5 * time.Second

// isBufferCapacityUsed reports whether pods may have used the capacity of a buffer: more pods run
// on nodes than at the last batch. A buffer's pods are always pending and never new, and only the
// planner knows where each would be placed.
func (s *Service) isBufferCapacityUsed(view collect.View, now time.Time) bool {
	return len(view.Snapshot.Buffers) > 0 && countRunningPods(view.Snapshot.Nodes) > s.lastRunningPods && now.Sub(s.lastBatchAt) >= bufferInterval
}

// countRunningPods returns the number of pods on nodes.
func countRunningPods(nodes []planning.Node) int64 {
	sum := int64(0)
	for i := range nodes {
		sum += nodes[i].Used.Pods().Value()
	}
	return sum
}
