package host_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// The latencies of a call to the queue and of a call to another API.
const (
	queueTrip = 10 * time.Millisecond
	apiTrip   = 5 * time.Millisecond
)

// far is a queue behind a network that may be cut.
type far struct {
	*memqueue.Queue
	cut *atomic.Bool
	// deaf makes calls hang while the network is cut, instead of failing.
	deaf bool
}

func (f far) trip(ctx context.Context) error {
	time.Sleep(queueTrip)
	if !f.cut.Load() {
		return nil
	}
	if f.deaf {
		<-ctx.Done()
		return ctx.Err()
	}
	return fault.F("calling", fault.Retry, "no route")
}

func (f far) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := f.trip(ctx); err != nil {
		return nil, err
	}
	return f.Queue.Receive(ctx, limit, wait, visibility)
}

func (f far) Delete(ctx context.Context, receipts ...string) error {
	if err := f.trip(ctx); err != nil {
		return err
	}
	return f.Queue.Delete(ctx, receipts...)
}

func (f far) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	if err := f.trip(ctx); err != nil {
		return err
	}
	return f.Queue.Hide(ctx, receipt, visibility)
}

func (f far) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if err := f.trip(ctx); err != nil {
		return err
	}
	return f.Queue.Send(ctx, messages...)
}

// quick are the options of a service with low latency requirements.
func quick() host.Options {
	return host.Options{
		MaxConcurrent: 512, Receivers: 8, MaxCalls: 8, Deadline: 5 * time.Second, Visibility: 30 * time.Second, MaxRetryPause: time.Second,
		Backoff: func(queue.Message) time.Duration { return time.Second },
	}
}

// wire is a bench behind a network that may be cut.
type wire struct {
	*bench
	cut  atomic.Bool
	deaf bool
}

func (w *wire) worker(handle host.Handler) host.Worker {
	return host.Worker{
		Service: "interruption", Queue: far{w.Queue, &w.cut, w.deaf}, Dead: far{w.dead, &w.cut, w.deaf}, Handle: handle, Now: time.Now,
	}
}

// handling handles poison and n good messages of two calls each, and returns when each good one was handled.
func handling(t *testing.T, o host.Options, poison, n int) (done []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{bench: newBench()}
		for i := range poison + n {
			w.PutRaw(fmt.Appendf(nil, "%t", i < poison))
		}
		began := time.Now()
		var mu sync.Mutex
		worker := w.worker(func(_ context.Context, m queue.Message) error {
			if string(m.Body) == "true" {
				return fault.F("reading", fault.Poison, "bad")
			}
			time.Sleep(2 * apiTrip)
			return nil
		})
		worker.Log = func(l host.LogLine) {
			mu.Lock()
			defer mu.Unlock()
			if l.Disposition.Action == host.Delete {
				done = append(done, time.Since(began))
			}
		}
		stop := polling(t, worker, o)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if in, dead := w.left(t); in != 0 || dead != poison || len(done) != n {
			t.Errorf("%d messages in the queue, %d in the DLQ, %d handled; want 0, %d, %d", in, dead, len(done), poison, n)
		}
	})
	slices.Sort(done)
	return done
}

func TestPollThroughput(t *testing.T) {
	const n = 20_000
	done := handling(t, quick(), 0, n)
	rate := n / done[n-1].Seconds()
	t.Logf("%.0f messages per second with queue calls of %s and two API calls of %s", rate, queueTrip, apiTrip)
	if rate < 4_000 {
		t.Errorf("%.0f messages per second", rate)
	}
}

// A thousand messages behind a thousand poison messages take at most twice as long.
func TestGoodBehindPoison(t *testing.T) {
	const n = 1_000
	alone, behind := handling(t, quick(), 0, n), handling(t, quick(), n, n)
	p99 := n * 99 / 100
	t.Logf("p99 %s without poison messages, %s behind them", alone[p99], behind[p99])
	if behind[p99] > 2*alone[p99] {
		t.Errorf("p99 %s without poison messages and %s behind them", alone[p99], behind[p99])
	}
}

// firstAfter cuts the network for 45 s and returns how long after its end the first message was handled.
func firstAfter(t *testing.T, w *wire, cut *atomic.Bool, handle host.Handler) (took time.Duration) {
	t.Helper()
	var mended, first atomic.Pointer[time.Time]
	worker := w.worker(func(ctx context.Context, m queue.Message) error {
		if err := handle(ctx, m); err != nil {
			return err
		}
		if now := time.Now(); mended.Load() != nil {
			first.CompareAndSwap(nil, &now)
		}
		return nil
	})
	stop := polling(t, worker, quick())
	time.Sleep(5 * time.Second)
	cut.Store(true)
	for range 45 {
		w.PutRaw([]byte("{}"))
		time.Sleep(time.Second)
	}
	now := time.Now()
	mended.Store(&now)
	cut.Store(false)
	time.Sleep(time.Minute)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if in, dead := w.left(t); in != 0 || dead != 0 || first.Load() == nil {
		t.Fatalf("%d messages in the queue, %d in the DLQ", in, dead)
	}
	return first.Load().Sub(now)
}

func TestAfterAnOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		queue bool
		deaf  bool
	}{
		{"the queue rejects calls", true, false},
		{"the queue does not respond", true, true},
		{"an API rejects calls", false, false},
		{"an API does not respond", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var worst time.Duration
			for range 5 {
				synctest.Test(t, func(t *testing.T) {
					w := &wire{bench: newBench(), deaf: c.deaf}
					var api atomic.Bool
					cut := &api
					if c.queue {
						cut = &w.cut
					}
					took := firstAfter(t, w, cut, func(ctx context.Context, _ queue.Message) error {
						if !api.Load() {
							return nil
						}
						if c.deaf {
							// Like a service whose calls time out after two seconds.
							time.Sleep(2 * time.Second)
						}
						return fault.F("calling", fault.Retry, "no route")
					})
					worst = max(worst, took)
				})
			}
			t.Logf("the first message was handled after at most %s", worst)
			if worst >= 2*time.Second {
				t.Errorf("the first message was handled after %s", worst)
			}
		})
	}
}
