package host_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func TestDecideDisposition(t *testing.T) {
	kind := func(k fault.Kind) error { return fmt.Errorf("around: %w", fault.F("doing", k, "because")) }
	for _, c := range []struct {
		name     string
		err      error
		receives int
		action   host.Action
		kind     fault.Kind
	}{
		{"success", nil, 1, host.Delete, ""},
		{"success at receive 100", nil, 100, host.Delete, ""},
		{"foreign", kind(fault.Foreign), 1, host.Delete, fault.Foreign},
		{"stale", kind(fault.Stale), 1, host.Delete, fault.Stale},
		{"poison", kind(fault.Poison), 1, host.MoveToDLQ, fault.Poison},
		{"rejected at receive 100", kind(fault.Rejected), 100, host.RetryLater, fault.Rejected},
		{"retry", kind(fault.Retry), 1, host.RetryLater, fault.Retry},
		{"retry never moves to the DLQ", kind(fault.Retry), 99, host.RetryLater, fault.Retry},
		{"throttled", kind(fault.Throttled), 1, host.RetryLater, fault.Throttled},
		{"unknown", kind(fault.Unknown), 1, host.RetryLater, fault.Unknown},
		{"denied", kind(fault.Denied), 1, host.RetryLater, fault.Denied},
		{"conflict", kind(fault.Conflict), 1, host.RetryLater, fault.Conflict},
		{"missing", kind(fault.Missing), 1, host.RetryLater, fault.Missing},
		{"bug", kind(fault.Bug), 1, host.LeaveHidden, fault.Bug},
		{"bug just before the limit", kind(fault.Bug), host.MaxBugReceives - 1, host.LeaveHidden, fault.Bug},
		{"bug at the limit", kind(fault.Bug), host.MaxBugReceives, host.MoveToDLQ, fault.Bug},
		{"invalid", kind(fault.Invalid), 1, host.LeaveHidden, fault.Invalid},
		{"invalid at the limit", kind(fault.Invalid), host.MaxBugReceives, host.MoveToDLQ, fault.Invalid},
		{"an error without a kind counts as a bug", errors.New("plain"), 1, host.LeaveHidden, fault.Bug},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := host.DecideDisposition(c.err, queue.Message{ID: "m", Receives: c.receives})
			if v.Action != c.action || v.Kind != c.kind {
				t.Errorf("action %s with kind %q, want %s with kind %q", v.Action, v.Kind, c.action, c.kind)
			}
			if c.err != nil && v.Reason != c.err.Error() {
				t.Errorf("reason %q", v.Reason)
			}
			if (v.RetryAfter > 0) != (v.Action == host.RetryLater) {
				t.Errorf("action %s, retry after %s", v.Action, v.RetryAfter)
			}
		})
	}
}

// The backoff stays within its bounds, is deterministic and spreads.
func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := queue.Message{ID: rapid.String().Draw(t, "id"), Receives: rapid.IntRange(0, 1000).Draw(t, "receives")}
		full := time.Minute
		if m.Receives < 6 {
			full = 2 * time.Second << max(m.Receives-1, 0)
		}
		got := host.Backoff(m)
		if got > full || got < full*3/4 {
			t.Fatalf("backoff %s at receive %d, want 75 to 100 %% of %s", got, m.Receives, full)
		}
		if again := host.Backoff(m); again != got {
			t.Fatalf("backoff %s, then %s for the same message", got, again)
		}
	})
	distinct := map[time.Duration]bool{}
	for i := range 100 {
		distinct[host.Backoff(queue.Message{ID: strconv.Itoa(i), Receives: 3})] = true
	}
	if len(distinct) < 50 {
		t.Errorf("100 messages have only %d different backoffs", len(distinct))
	}
}
