package eviction_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination/eviction"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// api answers removals with a delay.
type api struct {
	takes  time.Duration
	answer func(name string) error

	mu          sync.Mutex
	requested   []string
	under, most int
}

func (a *api) removal(name string) eviction.Removal {
	return eviction.Removal{Pod: pod(name), Do: func(ctx context.Context) error {
		a.mu.Lock()
		a.requested = append(a.requested, name)
		a.under++
		a.most = max(a.most, a.under)
		a.mu.Unlock()
		defer func() { a.mu.Lock(); a.under--; a.mu.Unlock() }()
		select {
		case <-time.After(a.takes):
		case <-ctx.Done():
			return fault.E("evicting "+name, fault.Unknown, ctx.Err())
		}
		if a.answer == nil {
			return nil
		}
		return a.answer(name)
	}}
}

func (a *api) removals(n int) []eviction.Removal {
	var out []eviction.Removal
	for i := range n {
		out = append(out, a.removal(fmt.Sprintf("p%03d", i)))
	}
	return out
}

func TestRemovalsStartInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{takes: time.Second}
		if err := eviction.New(0, eviction.EvictionBackoff, time.Now).Remove(t.Context(), a.removals(3)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"p000", "p001", "p002"}, a.requested); diff != "" || a.most != 1 {
			t.Errorf("%d at a time\n%s", a.most, diff)
		}
	})
}

// Remove returns at once, the number of concurrent requests is limited, and removals of an
// earlier list are not started.
func TestRemoveIsAsynchronous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{takes: time.Second}
		q := eviction.New(32, eviction.EvictionBackoff, time.Now)
		began := time.Now()
		look, end := context.WithCancel(t.Context())
		if err := q.Remove(look, a.removals(100)); err != nil {
			t.Fatal(err)
		}
		end()
		if took := time.Since(began); took != 0 {
			t.Errorf("Remove blocked for %s", took)
		}
		time.Sleep(time.Second / 2)
		if q.MayRemove(pod("p031")) || !q.MayRemove(pod("p032")) {
			t.Error("want no eviction of a pod in flight, and an eviction of one that is not started")
		}
		if err := q.Remove(t.Context(), append(a.removals(3), a.removal("late"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(a.requested) != 33 || a.requested[32] != "late" || a.most != 32 {
			t.Errorf("requested %d removals, at most %d at once: %v", len(a.requested), a.most, a.requested)
		}
	})
}

// The last of 1,500 pods on 150 nodes is requested within seconds, and the reconcile never waits.
func TestManyRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{takes: 20 * time.Millisecond}
		q := eviction.New(32, eviction.EvictionBackoff, time.Now)
		began := time.Now()
		if err := q.Remove(t.Context(), a.removals(1500)); err != nil {
			t.Fatal(err)
		}
		waited := time.Since(began)
		for a.count() < 1500 {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); waited != 0 || took > time.Second {
			t.Errorf("Remove blocked for %s, and the last removal was requested after %s", waited, took)
		}
		time.Sleep(time.Second)
	})
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requested)
}

func TestEvictionBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := fault.F("evicting", fault.Throttled, "a budget")
		a := &api{answer: func(string) error { return no }}
		q := eviction.New(0, eviction.EvictionBackoff, time.Now)
		began := time.Now()
		for _, want := range []time.Duration{
			100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
			3200 * time.Millisecond, 6400 * time.Millisecond, 10 * time.Second, 10 * time.Second,
		} {
			last := time.Now()
			if err := q.Remove(t.Context(), []eviction.Removal{a.removal("p")}); err != nil {
				t.Fatalf("Remove returned an error for a pod's disruption budget: %v", err)
			}
			// A reconcile runs at least each second.
			due := q.NextRetry(last)
			if soon := want < time.Second; soon && !due.Equal(last.Add(want)) || !soon && !due.IsZero() || !q.NextRetry(last.Add(want)).IsZero() {
				t.Errorf("after a wait of %s the next retry is at %s", want, due)
			}
			time.Sleep(want - 1)
			if q.MayRemove(pod("p")) {
				t.Fatalf("the eviction may be repeated before %s", want)
			}
			time.Sleep(1 * time.Nanosecond)
			if !q.MayRemove(pod("p")) {
				t.Fatalf("the eviction may not be repeated after %s", want)
			}
		}
		try, ok := q.LastAttempt(pod("p"))
		if !ok || !errors.Is(try.Err, no) || !try.Since.Equal(began) {
			t.Errorf("got attempt %+v since %s", try, began)
		}
		a.answer = nil
		if err := q.Remove(t.Context(), []eviction.Removal{a.removal("p")}); err != nil {
			t.Fatal(err)
		}
		if try, _ := q.LastAttempt(pod("p")); try.Err != nil || !try.Since.IsZero() || q.MayRemove(pod("p")) {
			t.Errorf("after a successful eviction the attempt is %+v", try)
		}
		time.Sleep(5 * time.Minute)
		q.Prune()
		if _, ok := q.LastAttempt(pod("p")); !ok {
			t.Error("the last attempt is removed at once")
		}
		time.Sleep(time.Minute)
		q.Prune()
		if _, ok := q.LastAttempt(pod("p")); ok {
			t.Error("the last attempt is still stored five minutes after its backoff")
		}
	})
}

// Rejected deletions are retried each second at least, and an accepted one not before the watch must have delivered it.
func TestDeletionBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(string) error { return fault.F("deleting", fault.Unknown, "a webhook") }}
		q := eviction.New(0, eviction.DeletionBackoff, time.Now)
		for i, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second, time.Second, 10 * time.Second} {
			if i == 6 {
				a.answer = nil
			}
			if err := q.Remove(t.Context(), []eviction.Removal{a.removal("p")}); (err == nil) != (i == 6) {
				t.Fatalf("deletion %d: %v", i, err)
			}
			time.Sleep(want - 1)
			if q.MayRemove(pod("p")) {
				t.Errorf("deletion %d is repeated before %s", i, want)
			}
			time.Sleep(time.Nanosecond)
			if !q.MayRemove(pod("p")) {
				t.Errorf("deletion %d is not repeated after %s", i, want)
			}
		}
	})
}

// The next retry is that of the pod whose backoff ends first, and a pod without a rejection has none.
func TestFirstRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(name string) error {
			if name == "gone" {
				return nil
			}
			return fault.F("evicting "+name, fault.Throttled, "a budget")
		}}
		q := eviction.New(0, eviction.EvictionBackoff, time.Now)
		// The backoff of a pod doubles with each rejection: p001 waits for 100 ms, p000 for 200 ms.
		for _, list := range [][]eviction.Removal{{a.removal("p000")}, {a.removal("gone"), a.removal("p000"), a.removal("p001")}} {
			if err := q.Remove(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 { // The pods are in a map.
			if due := time.Until(q.NextRetry(time.Now())); due != 100*time.Millisecond {
				t.Fatalf("the next retry is in %s, want 100ms", due)
			}
		}
	})
}

// The sixth error is the first that is only counted.
func TestReportedErrorsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n, want := range map[int]string{5: "evicting p004: no answer", 6: "and 1 more failed pod removals"} {
			a := &api{answer: func(name string) error { return fault.F("evicting "+name, fault.Unknown, "no answer") }}
			if err := eviction.New(0, eviction.EvictionBackoff, time.Now).Remove(t.Context(), a.removals(n)); !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%d failures: %v, want %q at the end", n, err, want)
			}
		}
	})
}

func TestReportedErrorsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := map[string]fault.Kind{"p000": fault.Conflict, "p001": fault.Missing, "p002": fault.Throttled}
		a := &api{answer: func(name string) error {
			if kind, ok := kinds[name]; ok {
				return fault.F("evicting "+name, kind, "no")
			}
			return fault.F("evicting "+name, fault.Unknown, "no answer")
		}}
		q := eviction.New(0, eviction.EvictionBackoff, time.Now)
		err := q.Remove(t.Context(), a.removals(10))
		if len(a.requested) != 10 {
			t.Errorf("a failed removal blocks the others: %v", a.requested)
		}
		if !fault.Is(err, fault.Unknown) || !strings.Contains(err.Error(), "p003") || !strings.HasSuffix(err.Error(), "and 2 more failed pod removals") {
			t.Errorf("%v", err)
		}
		for _, name := range []string{"p000", "p001"} {
			if try, _ := q.LastAttempt(pod(name)); try.Err != nil {
				t.Errorf("%s is gone, but its attempt has the error %v", name, try.Err)
			}
		}
		if err := q.Remove(t.Context(), nil); err != nil {
			t.Errorf("the errors were returned twice: %v", err)
		}
	})
}

// Removals that hang time out and are then reported.
func TestUnansweredRemovalsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{takes: time.Hour}
		q := eviction.New(2, eviction.EvictionBackoff, time.Now)
		if err := q.Remove(t.Context(), a.removals(5)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if _, ok := q.LastAttempt(pod("p000")); ok {
			t.Error("the removal timed out after 4 s")
		}
		time.Sleep(time.Second)
		for _, name := range []string{"p000", "p004"} {
			// One is in flight, and the other waits for it.
			if try, ok := q.LastAttempt(pod(name)); !ok || !fault.Is(try.Err, fault.Unknown) || time.Since(try.Since) != 5*time.Second {
				t.Errorf("%s: the attempt after a timeout is %+v", name, try)
			}
		}
		if _, ok := q.LastAttempt(pod("another")); ok {
			t.Error("a pod without a request has an attempt")
		}
		time.Sleep(24 * time.Second)
		if n := a.count(); n != 2 {
			t.Errorf("%d removals are in flight, want 2", n)
		}
		if err := q.Remove(t.Context(), a.removals(5)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := a.count(); n != 4 {
			t.Errorf("%d removals were started after the first timed out, want 4", n)
		}
		// No reconcile ran for a while, so that another replica may lead.
		time.Sleep(time.Minute)
		if n := a.count(); n != 4 {
			t.Errorf("%d removals were started after an old reconcile, want 4", n)
		}
		if err := q.Remove(t.Context(), nil); !fault.Is(err, fault.Unknown) {
			t.Errorf("the timeout was not returned: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}
