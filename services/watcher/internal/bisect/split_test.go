package bisect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

// Splitting ends with batches of one class each, every class is sent, and none is parked.
func TestSplitReachesEveryClass(t *testing.T) {
	classes := []uint64{3, 5, 7, 11, 13}
	var h outbox.Bisection
	var turns []uint64
	for range 20 {
		for {
			next, halved := bisect.SplitTooLarge(h, classes)
			if !halved {
				break
			}
			h = next
		}
		for _, class := range classes {
			if bisect.IncludesClass(h, class) {
				turns = append(turns, class)
			}
		}
		if h = bisect.PrepareNext(bisect.AfterAnswer(h, true), classes, time.Time{}); !bisect.IsActive(h) {
			break
		}
	}
	if !slices.Equal(turns, classes) || bisect.IsActive(h) || len(h.Parked) > 0 {
		t.Errorf("got turns %v and bisection %+v", turns, h)
	}
}

// A batch of one class or none is not split.
func TestSplitStopsAtOneClass(t *testing.T) {
	for name, c := range map[string]struct {
		hunt    outbox.Bisection
		classes []uint64
	}{
		"one class": {outbox.Bisection{}, []uint64{7}},
		"no class":  {outbox.Bisection{}, nil},
		"a probe":   {outbox.Bisection{EmptyBatch: true, Spans: []outbox.Span{{From: 0, To: 9}}}, []uint64{3, 5}},
	} {
		if h, halved := bisect.SplitTooLarge(c.hunt, c.classes); halved {
			t.Errorf("%s: split into %+v", name, h)
		}
	}
}
