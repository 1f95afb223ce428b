package watcher

import (
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// bufferInterval is how often buffers are planned again at most because pods run where
// none did. Where nothing changes it is flight.Reopen, as upstream's 30 s.
const bufferInterval = 5 * time.Second

// isBufferCapacityUsed reports whether the room of a buffer may have been taken: more pods
// run on nodes than at the last batch. A buffer's pods wait for ever, so that
// nothing of theirs is ever news; and where each of them would go is the
// planner's to know.
func (s *Service) isBufferCapacityUsed(view collect.View, now time.Time) bool {
	return len(view.Snapshot.Buffers) > 0 && countRunningPods(view.Snapshot.Nodes) > s.lastRunningPods && now.Sub(s.lastBatchAt) >= bufferInterval
}

// countRunningPods counts the pods that run on nodes.
func countRunningPods(nodes []scheduling.Node) int64 {
	sum := int64(0)
	for i := range nodes {
		sum += nodes[i].Used.Pods().Value()
	}
	return sum
}
