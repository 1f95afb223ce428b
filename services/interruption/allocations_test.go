//go:build !race

package interruption

import (
	"context"
	"testing"
)

// TestAllocations limits the allocations of each message, because thousands a second are
// handled. The race detector allocates too.
func TestAllocations(t *testing.T) {
	for _, c := range messageCases {
		w, messages := newWorkerWithMessages(t, nil, c.body)
		for n, allowed := range map[int]float64{1: c.alone, len(messages): c.allocs} {
			got := testing.AllocsPerRun(100, func() { w.ProcessMessages(context.Background(), messages[:n]) }) / float64(n)
			t.Logf("%s, of %d: %.1f allocations", c.name, n, got)
			if got > allowed {
				t.Errorf("%s, of %d: %.1f allocations, want at most %.0f", c.name, n, got, allowed)
			}
		}
	}
}
