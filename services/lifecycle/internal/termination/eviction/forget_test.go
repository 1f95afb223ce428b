package eviction_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination/eviction"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// A replica that no longer leads starts no further removals and retries none. A request in flight continues, and is not doubled.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{takes: time.Second, answer: func(string) error { return fault.F("evicting", fault.Throttled, "a budget") }}
		q := eviction.New(2, eviction.EvictionBackoff, time.Now)
		if err := q.Remove(t.Context(), a.removals(3)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second / 2)
		q.Forget()
		if q.MayRemove(pod("p000")) || !q.MayRemove(pod("p002")) {
			t.Error("want no second request for a pod in flight")
		}
		time.Sleep(2 * time.Second)
		slices.Sort(a.requested)
		if diff := cmp.Diff([]string{"p000", "p001"}, a.requested); diff != "" {
			t.Errorf("requested (-want +got):\n%s", diff)
		}
		if try, _ := q.LastAttempt(pod("p000")); try.Err == nil {
			t.Error("the eviction was not rejected")
		}
		q.Forget()
		if due := q.NextRetry(time.Now().Add(-time.Hour)); !due.IsZero() {
			t.Errorf("a retry is due at %s", due)
		}
		if _, known := q.LastAttempt(pod("p000")); known {
			t.Error("the rejection is still known")
		}
	})
}
