package watcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// A cache that does not sync leads to an error after half a minute, and every ten seconds from then
// on.
func TestCacheThatDoesNotSync(t *testing.T) {
	s := newHarness(t)
	var recorded []time.Duration
	begun := s.now
	for s.now.Sub(begun) < time.Minute {
		if err := s.svc.Step(t.Context()); err != nil {
			if !fault.Is(err, fault.Retry) || fault.FindHint(err) == "" || !strings.Contains(err.Error(), s.now.Sub(begun).String()) {
				t.Errorf("after %s got error %v", s.now.Sub(begun), err)
			}
			recorded = append(recorded, s.now.Sub(begun))
		}
		if s.svc.Reconciled() {
			t.Fatal("reported a reconcile before the cache synced")
		}
		s.now = s.now.Add(watcher.StepInterval)
	}
	if len(recorded) != 3 || recorded[0] != 30*time.Second || recorded[1] != 40*time.Second || recorded[2] != 50*time.Second {
		t.Errorf("got errors after %v", recorded)
	}
	s.advance(time.Minute)
}
