package simulate_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

func TestMeasureEffort(t *testing.T) {
	at := time.Unix(0, 0)
	now := func() time.Time {
		at = at.Add(3 * time.Second)
		return at
	}
	var kept [][]byte
	got := simulate.MeasureEffort(now, func() {
		for range 1000 {
			kept = append(kept, make([]byte, 4<<10))
		}
	})
	if len(kept) != 1000 || got.SolveWallS != 3 || got.SolveMallocs < 1000 || got.SolveAllocMB < 3.9 || got.SolveAllocMB > 40 {
		t.Errorf("%d allocations: %+v", len(kept), got)
	}
	if got.PeakRSSMB < 4 || got.PeakRSSMB > 10_000 || got.SolveUserS < 0 || got.SolveSysS < 0 {
		t.Errorf("resource usage: %+v", got)
	}
}
