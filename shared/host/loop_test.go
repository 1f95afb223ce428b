package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/host"
)

// looping runs a loop in a synctest bubble while during runs.
func looping(t *testing.T, l host.Loop, during func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	during()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLoopInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps int
		looping(t, host.Loop{Interval: time.Second, Reconcile: func(context.Context) error { steps++; return nil }}, func() {
			time.Sleep(10*time.Second + time.Millisecond)
		})
		if steps != 11 {
			t.Errorf("%d reconciles in 10 s", steps)
		}
	})
}

// A change triggers a reconcile at once, a flood of changes ten reconciles per second, and a change during a
// reconcile is not lost.
func TestLoopCoalescesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{}, 1)
		notify := func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		var steps atomic.Int64
		first := true
		l := host.Loop{Interval: time.Hour, Changed: changed, Reconcile: func(context.Context) error {
			if steps.Add(1); first {
				first = false
				notify()
			}
			return nil
		}}
		looping(t, l, func() {
			time.Sleep(time.Second)
			if n := steps.Load(); n != 2 {
				t.Errorf("%d reconciles, want the first and one for the change during it", n)
			}
			notify()
			synctest.Wait()
			if n := steps.Load(); n != 3 {
				t.Errorf("%d reconciles after a change", n)
			}
			for range 1000 {
				notify()
				time.Sleep(time.Millisecond)
			}
			if n := steps.Load(); n < 11 || n > 14 {
				t.Errorf("%d reconciles after a second of changes", n)
			}
		})
	})
}

// Due work is reconciled when it is due, even within the minimum pause; work that stays due is retried at most ten
// times per second.
func TestLoopReconcilesDueWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		dues := []time.Duration{50 * time.Millisecond, time.Second, 0, 10 * time.Second}
		l := host.Loop{
			Interval:  3 * time.Second,
			Reconcile: func(context.Context) error { at = append(at, time.Since(began)); return nil },
			NextDue: func() time.Time {
				if len(at) > len(dues) || dues[len(at)-1] == 0 {
					return time.Time{}
				}
				return began.Add(dues[len(at)-1])
			},
		}
		looping(t, l, func() { time.Sleep(10 * time.Second) })
		want := []time.Duration{0, 50 * time.Millisecond, time.Second, 4 * time.Second, 7 * time.Second}
		if diff := cmp.Diff(want, at[:min(len(at), len(want))]); diff != "" {
			t.Error(diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		steps := 0
		l := host.Loop{
			Interval: time.Minute, Reconcile: func(context.Context) error { steps++; return nil },
			NextDue: func() time.Time { return time.Now().Add(-time.Hour) },
		}
		looping(t, l, func() { time.Sleep(time.Second + time.Millisecond) })
		if steps != 11 {
			t.Errorf("%d reconciles in a second of due work, want 11", steps)
		}
	})
}

// Under constant change a slow reconcile leaves half of the time to the messages that wait for the same mutex: one
// message per reconcile would not keep up with a storm.
func TestLoopSharesMutexWithMessages(t *testing.T) {
	for _, took := range []time.Duration{400 * time.Millisecond, 2 * time.Second} {
		t.Run(took.String(), func(t *testing.T) { leavesHalf(t, took) })
	}
}

func leavesHalf(t *testing.T, took time.Duration) {
	const during = 16 * time.Second
	synctest.Test(t, func(t *testing.T) {
		gate, changed, messages := host.NewMutex(), make(chan struct{}), 0
		handle := gate.WrapLocked(func(context.Context) error {
			time.Sleep(20 * time.Millisecond)
			messages++
			return nil
		})
		close(changed) // A constant stream of changes.
		step := gate.WrapLocked(func(context.Context) error { time.Sleep(took); return nil })
		// Work is also due constantly, as in a storm of refused evictions.
		due := func() time.Time { return time.Now().Add(50 * time.Millisecond) }
		looping(t, host.Loop{Interval: time.Second, Changed: changed, NextDue: due, Reconcile: step}, func() {
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if err := handle(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		if least := int(during.Seconds()) * 18; messages < least {
			t.Errorf("%d messages were handled in %s, want at least %d", messages, during, least)
		}
	})
}

// Reconciles that fail, panic or hang are reported and do not end the loop.
func TestLoopContinuesAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps, told := 0, []string{}
		l := host.Loop{Interval: time.Second, Timeout: 5 * time.Second, ErrorLog: &host.RateLimitedLog{Write: func(err error, _ int) { told = append(told, err.Error()[:min(30, len(err.Error()))]) }}}
		l.Reconcile = func(ctx context.Context) error {
			switch steps++; {
			case steps <= 3:
				return errors.New("first error")
			case steps <= 6:
				panic("second error")
			case steps == 7:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		looping(t, l, func() { time.Sleep(20 * time.Second) })
		want := []string{"reconciling: first error", "reconciling: panic: second err", "reconciling: context deadline "}
		if diff := cmp.Diff(want, told); diff != "" || steps < 10 {
			t.Errorf("%d reconciles%s", steps, diff)
		}
	})
}

// Errors caused by shutdown are not reported.
func TestLoopStopsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := host.Loop{Interval: time.Second, ErrorLog: &host.RateLimitedLog{Write: func(err error, _ int) { t.Error(err) }},
			Reconcile: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		looping(t, l, func() { time.Sleep(time.Second) })
	})
}

func TestRateLimitedLog(t *testing.T) {
	var told []string
	trouble := &host.RateLimitedLog{Write: func(err error, times int) { told = append(told, fmt.Sprintf("%v ×%d", err, times)) }}
	for second := range 600 {
		at := noon.Add(time.Duration(second) * time.Second)
		trouble.Report(at, fmt.Errorf("no route (request 0%d-abcdef)", second))
		if second == 90 {
			trouble.Report(at, errors.New("denied"))
		}
		trouble.Report(at, nil)
	}
	want := []string{
		"no route (request 00-abcdef) ×1", "no route (request 060-abcdef) ×60", "denied ×1",
		"no route (request 0180-abcdef) ×120", "no route (request 0420-abcdef) ×240",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	var none *host.RateLimitedLog
	none.Report(noon, errors.New("no writer"))
}

func TestMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := host.NewMutex()
		var inside, most, done atomic.Int32
		work := gate.WrapLocked(func(context.Context) error {
			most.Store(max(most.Load(), inside.Add(1)))
			time.Sleep(time.Second)
			inside.Add(-1)
			done.Add(1)
			return nil
		})
		for range 5 {
			go func() { _ = work(t.Context()) }()
		}
		time.Sleep(1500 * time.Millisecond)
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := work(hurried); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("RunLocked with a cancelled context = %v", err)
		}
		time.Sleep(10 * time.Second)
		if most.Load() != 1 || done.Load() != 5 {
			t.Errorf("%d concurrently, %d done", most.Load(), done.Load())
		}
		// A panic inside unlocks the mutex.
		func() {
			defer func() { _ = recover() }()
			_ = gate.RunLocked(t.Context(), func(context.Context) error { panic("oh") })
		}()
		if err := work(t.Context()); err != nil || done.Load() != 6 {
			t.Errorf("%d done, and %v", done.Load(), err)
		}
	})
}

// Changes that are buffered during a reconcile are one change, and each reconcile is reported with its duration.
func TestLoopDropsBufferedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{}, 5)
		var reported []string
		first := true
		l := host.Loop{Interval: time.Hour, Changed: changed, Reconcile: func(context.Context) error {
			time.Sleep(time.Second)
			if !first {
				return errAway
			}
			first = false
			for range cap(changed) {
				changed <- struct{}{}
			}
			return nil
		}, OnReconciled: func(took time.Duration, err error) {
			reported = append(reported, fmt.Sprint(took, ": ", err))
		}}
		looping(t, l, func() { time.Sleep(time.Minute) })
		if want := []string{"1s: <nil>", "1s: reconciling: away"}; !slices.Equal(reported, want) {
			t.Errorf("reconciles %q, want %q", reported, want)
		}
	})
}
