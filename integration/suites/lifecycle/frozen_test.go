package lifecycle

import (
	"testing"
	"time"
)

// standstill is how long the API server does not respond: longer than a client's timeout
// for one call.
const standstill = 35 * time.Second

// TestFrozenAPIServer freezes the API server during a drain. Nothing is lost, and the drain
// continues.
func TestFrozenAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	t.Parallel()
	s := newSite(t)
	m := s.machine("frozen")
	m.pod("ice")
	m.budget("ice", "ice", 1)
	m.deleteClaim()
	thaw, err := s.plane.Freeze()
	s.check(err)
	time.Sleep(standstill)
	s.check(thaw())
	if m.isTerminationRequested() {
		s.Error("the termination was requested while its pod runs")
	}
	m.patchBudget("ice", map[string]any{"spec": map[string]any{"minAvailable": 0}})
	took := m.waitUntil(30*time.Second, "evicted", func() bool { gone, _ := m.podDeletion("ice"); return gone })
	s.Logf("evicted %s after the API server came back", took.Round(time.Millisecond))
	m.endPod("ice")
	m.requireTermination()
}
