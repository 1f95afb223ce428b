package host

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// A batch is in flight until its last message is handled; then nothing of it stays in memory.
func TestHandledBatchesAreForgotten(t *testing.T) {
	p := newPoller(Worker{}, Options{}.withDefaults())
	f := p.trackBatch([]queue.Message{{Receipt: "a"}, {Receipt: "b"}})
	for at, left := range []int{1, 0} {
		if p.untrackMessage(f, at); len(p.inFlight) != left {
			t.Errorf("%d batches in flight after message %d, want %d", len(p.inFlight), at, left)
		}
	}
}
