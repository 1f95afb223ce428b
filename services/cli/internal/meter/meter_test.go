package meter_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/meter"
)

func TestSolvingMeasures(t *testing.T) {
	at := time.Unix(0, 0)
	now := func() time.Time {
		at = at.Add(3 * time.Second)
		return at
	}
	var kept [][]byte
	got := meter.Solving(now, func() {
		for range 1000 {
			kept = append(kept, make([]byte, 4<<10))
		}
	})
	if len(kept) != 1000 || got.SolveWallS != 3 || got.SolveMallocs < 1000 || got.SolveAllocMB < 3.9 || got.SolveAllocMB > 40 {
		t.Errorf("after %d: %+v", len(kept), got)
	}
	if got.PeakRSSMB < 4 || got.PeakRSSMB > 10_000 || got.SolveUserS < 0 || got.SolveSysS < 0 {
		t.Errorf("of the system: %+v", got)
	}
}
