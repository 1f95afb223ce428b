package host_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// polling runs Poll in a synctest bubble until stop is called, which returns Poll's error.
func polling(t *testing.T, w host.Worker, o host.Options) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- host.Poll(ctx, w, o) }()
	return func() error {
		cancel()
		return <-done
	}
}

func (b *bench) put(n int) {
	for range n {
		b.PutRaw([]byte("{}"))
	}
}

// Poll runs at most MaxConcurrent handlers and handles everything once.
func TestPollBoundsConcurrency(t *testing.T) {
	for _, parallel := range []int{0, 1, 3, 10, 25} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench()
			var running, most, handled atomic.Int32
			w := b.worker(func(context.Context, queue.Message) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
				handled.Add(1)
				return nil
			})
			b.put(60)
			stop := polling(t, w, host.Options{MaxConcurrent: parallel})
			time.Sleep(2 * time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if want := cmp.Or(parallel, 10); int(most.Load()) != want || handled.Load() != 60 {
				t.Errorf("%d handled, at most %d concurrently; want 60 and %d", handled.Load(), most.Load(), want)
			}
			if in, _ := b.left(t); in != 0 {
				t.Errorf("%d messages in the queue", in)
			}
		})
	}
}

// A message is hidden for Visibility from the start, and longer only while its handler runs.
func TestPollVisibility(t *testing.T) {
	for _, c := range []struct {
		name string
		runs time.Duration
		want []string
	}{
		{"a quick handler", time.Second, []string{"receive 1 for 30s", "delete"}},
		{"a handler just within its deadline", 19 * time.Second, []string{"receive 1 for 30s", "hide 30s", "delete"}},
		{"a handler that ignores its deadline for long", 45 * time.Second, []string{"receive 1 for 30s", "hide 30s", "hide 30s", "hide 30s", "hide 30s", "delete"}},
		{"a handler that ignores its deadline", 25 * time.Second, []string{"receive 1 for 30s", "hide 30s", "hide 30s", "delete"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				var calls atomic.Int32
				w := b.worker(func(context.Context, queue.Message) error { calls.Add(1); time.Sleep(c.runs); return nil })
				b.put(1)
				stop := polling(t, w, host.Options{MaxConcurrent: 1, Deadline: 20 * time.Second, Visibility: 30 * time.Second})
				time.Sleep(c.runs + 10*time.Millisecond)
				got := b.log()
				if err := stop(); err != nil {
					t.Error(err)
				}
				// The next receive does not matter here.
				if diff := gocmp.Diff(c.want, got[:min(len(got), len(c.want))]); diff != "" || calls.Load() != 1 {
					t.Errorf("%d calls%s", calls.Load(), diff)
				}
			})
		})
	}
}

// A handler's context ends at its deadline.
func TestPollDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		began := time.Now()
		var took time.Duration
		w := b.worker(func(ctx context.Context, _ queue.Message) error {
			<-ctx.Done()
			took = time.Since(began)
			return ctx.Err()
		})
		b.put(1)
		stop := polling(t, w, host.Options{Deadline: 7 * time.Second})
		time.Sleep(8 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took != 7*time.Second {
			t.Errorf("the handler's context ended after %s", took)
		}
		if calls := b.log(); !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "hide ") }) {
			t.Errorf("the message was not hidden for its retry: %v", calls)
		}
	})
}

// On shutdown, handlers that finish in time count; the other messages are returned to the queue.
func TestPollStops(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle host.Handler
		took   time.Duration // from the start of the shutdown
		in     int
		last   string
	}{
		{"a handler that ends within the grace period", func(context.Context, queue.Message) error {
			time.Sleep(9 * time.Second) // between two visibility extensions
			return nil
		}, 8 * time.Second, 0, "delete"},
		{"a handler that stops with its context", func(ctx context.Context, _ queue.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}, 15 * time.Second, 1, "hide "},
		{"a handler that ignores its context", func(context.Context, queue.Message) error {
			time.Sleep(50 * time.Second)
			return nil
		}, 17 * time.Second, 1, "hide 0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.put(1)
				stop := polling(t, b.worker(c.handle), host.Options{Grace: 15 * time.Second, Deadline: time.Minute})
				time.Sleep(time.Second)
				began := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				calls := b.log()
				if took := time.Since(began).Round(time.Second); took != c.took {
					t.Errorf("shutdown took %s, want %s", took, c.took)
				}
				if in, _ := b.left(t); in != c.in || !strings.HasPrefix(calls[len(calls)-1], c.last) {
					t.Errorf("%d messages in the queue after %v", in, calls)
				}
				if c.last == "hide 0s" {
					if again, err := b.Queue.Receive(t.Context(), 1, 0, time.Minute); err != nil || len(again) != 1 {
						t.Errorf("the message is not visible again: %v", err)
					}
					time.Sleep(time.Minute) // let the handler end that ignores its context
				}
			})
		})
	}
}

// late is a queue whose receive returns messages although its context ended.
type late struct {
	*bench
	stop context.CancelFunc
}

func (l late) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	messages, err := l.bench.Receive(ctx, limit, wait, visibility)
	l.stop()
	return messages, err
}

func TestPollReturnsLateMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.put(2)
		ctx, cancel := context.WithCancel(t.Context())
		w := b.worker(func(context.Context, queue.Message) error { t.Error("handled"); return nil })
		w.Queue = late{b, cancel}
		began := time.Now()
		if err := host.Poll(ctx, w, host.Options{}); err != nil {
			t.Error(err)
		}
		if diff := gocmp.Diff([]string{"receive 10 for 15s", "hide 0s", "hide 0s"}, b.log()); diff != "" {
			t.Error(diff)
		}
		if visible, _, _ := b.Depth(t.Context()); visible != 2 {
			t.Errorf("%d messages visible", visible)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("shutdown took %s without a handler", took)
		}
	})
}

// A failing queue is polled ever more slowly, reported once, and used again as soon as it responds.
func TestPollBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.fail, b.failures = fault.F("receiving", fault.Retry, "request 1234abcd: no route"), 12
		b.put(1)
		var told []string
		w := b.worker(returns(nil))
		stop := polling(t, w, host.Options{ErrorLog: &host.RateLimitedLog{Write: func(err error, _ int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			told = append(told, err.Error())
		}}})
		time.Sleep(30 * time.Second)
		if failed := len(b.log()); failed < 4 || failed > 12 {
			t.Errorf("%d receives in 30 s", failed)
		}
		b.mu.Lock()
		if len(told) != 1 || !strings.Contains(told[0], "no route") {
			t.Errorf("reported errors %q", told)
		}
		b.mu.Unlock()
		time.Sleep(5 * time.Minute)
		if in, _ := b.left(t); in != 0 {
			t.Error("the message was not deleted")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A missing queue ends Poll only at the start.
func TestPollFailsWithoutQueue(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  fault.Kind
		fatal bool
	}{
		{"missing", fault.Missing, true}, {"invalid", fault.Invalid, true}, {"denied", fault.Denied, true}, {"throttled", fault.Throttled, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.fail, b.failures = fault.E("receiving", c.kind, errAway), -1
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := host.Poll(ctx, b.worker(returns(nil)), host.Options{})
				if errors.Is(err, errAway) != c.fatal {
					t.Error(err)
				}
			})
		})
	}
	t.Run("deleted later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench()
			stop := polling(t, b.worker(returns(nil)), host.Options{})
			time.Sleep(time.Minute)
			b.mu.Lock()
			b.fail, b.failures = fault.E("receiving", fault.Missing, errAway), -1
			b.mu.Unlock()
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	})
}

// A replica whose MayReceive returns false receives no messages.
func TestPollReceivesOnlyIfAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.put(1)
		var leads atomic.Bool
		var beats atomic.Int32
		stop := polling(t, b.worker(returns(nil)), host.Options{
			MayReceive: func(context.Context) (bool, error) { return leads.Load(), nil },
			Heartbeat:  func() { beats.Add(1) },
		})
		time.Sleep(time.Minute)
		if calls := b.log(); calls != nil || beats.Load() < 50 {
			t.Errorf("calls %v, %d heartbeats", calls, beats.Load())
		}
		leads.Store(true)
		time.Sleep(2 * time.Second)
		if in, _ := b.left(t); in != 0 {
			t.Error("the message was not deleted")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An error of MayReceive never ends Poll, not even before the first receive: an API server that starts denies everything
// until it has read its roles.
func TestPollOutlivesDeniedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.put(1)
		began := time.Now()
		stop := polling(t, b.worker(returns(nil)), host.Options{MayReceive: func(context.Context) (bool, error) {
			if time.Since(began) < 10*time.Second {
				return false, fault.E("reading a lease", fault.Denied, errAway)
			}
			return true, nil
		}})
		time.Sleep(time.Minute)
		if in, _ := b.left(t); in != 0 {
			t.Error("the message was not deleted")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The options' Backoff and ErrorLog are the worker's, unless it has its own.
func TestPollPassesOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		own  bool
		want string
	}{
		{"the options'", false, "hide 7s"},
		{"the worker's own", true, "hide 9s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				after := func(d time.Duration) func(queue.Message) time.Duration {
					return func(queue.Message) time.Duration { return d }
				}
				var reports [2]int
				log := func(i int) *host.RateLimitedLog {
					return &host.RateLimitedLog{Write: func(error, int) { reports[i]++ }}
				}
				w := b.worker(returns(fault.E("launching", fault.Retry, errAway)))
				w.HandleBatch = func(context.Context, []host.Delivery) { panic("in a batch") }
				if c.own {
					w.Backoff, w.ErrorLog = after(9*time.Second), log(1)
				}
				b.put(1)
				stop := polling(t, w, host.Options{Backoff: after(7 * time.Second), ErrorLog: log(0)})
				time.Sleep(time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if calls := b.log(); !slices.Contains(calls, c.want) {
					t.Errorf("calls %v, want %q", calls, c.want)
				}
				if c.own != (reports[1] == 1) || c.own == (reports[0] == 1) {
					t.Errorf("%d reports to the options' log, %d to the worker's", reports[0], reports[1])
				}
			})
		})
	}
}

// With MaxCalls, deletes that wait for a call in flight share the next one.
func TestPollLimitsCalls(t *testing.T) {
	for limit, want := range map[int]int32{0: 10, 1: 1, 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench()
			w := b.worker(func(context.Context, queue.Message) error { time.Sleep(time.Second); return nil })
			var inFlight, most atomic.Int32
			w.Queue = slowDeletes{b, &inFlight, &most}
			b.put(10)
			stop := polling(t, w, host.Options{MaxCalls: limit})
			time.Sleep(10 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if in, _ := b.left(t); in != 0 {
				t.Errorf("%d messages in the queue", in)
			}
			if most.Load() != want {
				t.Errorf("MaxCalls %d: %d deletes in flight, want %d", limit, most.Load(), want)
			}
		})
	}
}

// slowDeletes is a queue whose deletes take a second.
type slowDeletes struct {
	*bench
	inFlight, most *atomic.Int32
}

func (s slowDeletes) Delete(ctx context.Context, receipts ...string) error {
	s.most.Store(max(s.most.Load(), s.inFlight.Add(1)))
	defer s.inFlight.Add(-1)
	time.Sleep(time.Second)
	return s.bench.Delete(ctx, receipts...)
}

// Receiving and handling both are progress for the health probe.
func TestPollHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.put(1)
		var beats atomic.Int32
		w := b.worker(func(context.Context, queue.Message) error { time.Sleep(5 * time.Second); return nil })
		stop := polling(t, w, host.Options{MaxConcurrent: 2, Heartbeat: func() { beats.Add(1) }})
		time.Sleep(4 * time.Second)
		received := beats.Load()
		time.Sleep(2 * time.Second)
		if handled := beats.Load(); received != 1 || handled != 2 {
			t.Errorf("%d heartbeats after a receive, %d after its message was handled; want 1 and 2", received, handled)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// By default, a handler has a minute and a shutdown 20 s, and a receive waits no longer than SQS allows.
func TestPollDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.put(1)
		var timeout time.Duration
		w := b.worker(func(ctx context.Context, _ queue.Message) error {
			deadline, _ := ctx.Deadline()
			timeout = time.Until(deadline)
			<-ctx.Done()
			return ctx.Err()
		})
		var waits longestWait
		w.Queue = &waits
		waits.bench = b
		stop := polling(t, w, host.Options{})
		time.Sleep(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 20*time.Second || timeout != time.Minute {
			t.Errorf("a handler had %s, and shutdown took %s", timeout, took)
		}
		if waits.longest != 20*time.Second {
			t.Errorf("a receive waited %s, want the 20 s that SQS allows", waits.longest)
		}
	})
}

type longestWait struct {
	*bench
	longest time.Duration
}

func (l *longestWait) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	l.longest = max(l.longest, wait)
	return l.bench.Receive(ctx, limit, wait, visibility)
}

// If the queue does not exist, all receivers end.
func TestPollEndsAllReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.fail, b.failures = fault.E("receiving", fault.Missing, errAway), 1
		began := time.Now()
		err := host.Poll(t.Context(), b.worker(returns(nil)), host.Options{Receivers: 3})
		if took := time.Since(began); !errors.Is(err, errAway) || took != 0 {
			t.Errorf("Poll = %v after %s", err, took)
		}
	})
}

// Pauses after failed receives start short again once a receive has succeeded.
func TestPollForgetsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.fail, b.failures = fault.E("receiving", fault.Retry, errAway), 12
		stop := polling(t, b.worker(returns(nil)), host.Options{Wait: time.Second})
		time.Sleep(6 * time.Minute)
		b.mu.Lock()
		b.calls, b.failures = nil, 3
		b.mu.Unlock()
		time.Sleep(6 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if failed := slices.DeleteFunc(b.log(), func(c string) bool { return c != "receive failed" }); len(failed) != 3 {
			t.Errorf("%d failed receives in the first seconds of a second outage, want 3", len(failed))
		}
	})
}
