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
	var told []time.Duration
	begun := s.now
	for s.now.Sub(begun) < time.Minute {
		if err := s.svc.Step(t.Context()); err != nil {
			if !fault.Is(err, fault.Retry) || fault.FindHint(err) == "" || !strings.Contains(err.Error(), s.now.Sub(begun).String()) {
				t.Errorf("after %s got error %v", s.now.Sub(begun), err)
			}
			told = append(told, s.now.Sub(begun))
		}
		if s.svc.Reconciled() {
			t.Fatal("reported a reconcile before the cache synced")
		}
		s.now = s.now.Add(watcher.StepInterval)
	}
	if len(told) != 3 || told[0] != 30*time.Second || told[1] != 40*time.Second || told[2] != 50*time.Second {
		t.Errorf("got errors after %v", told)
	}
	s.advance(time.Minute)
}
