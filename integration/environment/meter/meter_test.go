package meter

import (
	"testing"
	"time"
)

var sink []byte

// TestMeterSeesUsage allocates memory for 50 ms: time, allocations and memory are measured. The loop
// needs the wall clock, because CPU time has no fake clock.
func TestMeterSeesUsage(t *testing.T) {
	m := Start()
	for deadline := time.Now().Add(50 * time.Millisecond); time.Now().Before(deadline); {
		sink = make([]byte, 1<<16)
	}
	s := m.Stop()
	if s.WallS < 0.05 || s.UserS+s.SysS <= 0 || s.Mallocs == 0 || s.AllocMB <= 0 || s.PeakRSSMB <= 0 {
		t.Errorf("%+v", s)
	}
}
