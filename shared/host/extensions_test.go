package host_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Of messages that were received together, only the ones still being handled are hidden for longer.
func TestPollExtendsUnfinishedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		var calls atomic.Int32
		w := b.worker(func(context.Context, queue.Message) error {
			time.Sleep(time.Duration(calls.Add(1)) * 4 * time.Second) // 4, 8 and 12 s
			return nil
		})
		b.put(3)
		stop := polling(t, w, host.Options{MaxConcurrent: 3, Visibility: 30 * time.Second})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		hidden := slices.DeleteFunc(b.log(), func(c string) bool { return !strings.HasPrefix(c, "hide ") })
		if len(hidden) != 1 {
			t.Errorf("%d extensions, want one, of the message that took more than 10 s", len(hidden))
		}
	})
}

// The visibility of each message is extended when a third of it has passed, also if others were received earlier.
func TestPollExtendsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		w := b.worker(func(context.Context, queue.Message) error { time.Sleep(18 * time.Second); return nil })
		stop := polling(t, w, host.Options{Visibility: 30 * time.Second})
		b.put(1)
		time.Sleep(2 * time.Second)
		b.put(1)
		for _, c := range []struct {
			after   time.Duration
			extends int
		}{{7 * time.Second, 0}, {2 * time.Second, 1}, {2 * time.Second, 2}} {
			time.Sleep(c.after)
			if hidden := slices.DeleteFunc(b.log(), func(c string) bool { return !strings.HasPrefix(c, "hide ") }); len(hidden) != c.extends {
				t.Errorf("%d extensions, want %d", len(hidden), c.extends)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An extension that fails is reported, except if the message is gone.
func TestPollReportsFailedExtensions(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      error
		shutDown bool
		want     string
	}{
		{"extended", nil, false, ""},
		{"returned during shutdown", nil, true, ""},
		{"throttled", fault.E("hiding", fault.Throttled, errAway), false, "extending the visibility of a message of planner"},
		{"deleted", fault.E("hiding", fault.Missing, errAway), false, ""},
		{"throttled during shutdown", fault.E("hiding", fault.Throttled, errAway), true, "returning a message to the queue of planner"},
		{"deleted during shutdown", fault.E("hiding", fault.Missing, errAway), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.noHide = c.err
				var reported []string
				log := &host.RateLimitedLog{Write: func(err error, _ int) {
					b.mu.Lock()
					defer b.mu.Unlock()
					reported = append(reported, err.Error())
				}}
				b.put(1)
				w := b.worker(func(context.Context, queue.Message) error { time.Sleep(7 * time.Second); return nil })
				stop := polling(t, w, host.Options{Grace: time.Second, ErrorLog: log})
				if time.Sleep(time.Second); !c.shutDown {
					time.Sleep(10 * time.Second)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // The handler ends.
				b.mu.Lock()
				defer b.mu.Unlock()
				if got := strings.Join(reported, "\n"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
					t.Errorf("reported %q, want %q", got, c.want)
				}
			})
		})
	}
}
