package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// errorFor is the error for a message, by its body.
func errorFor(m queue.Message) error {
	switch body := string(m.Body); body {
	case "ok":
		return nil
	case "stale":
		return fault.F("accepting", fault.Stale, "expired")
	case "poison":
		return fault.F("decoding", fault.Poison, "not JSON")
	case "retry":
		return fault.F("calling", fault.Retry, "later")
	case "alone":
		return host.ErrNotBatched
	case "panic":
		panic("oh")
	default:
		return errors.New("a bug")
	}
}

// newBatchHandler is a batch handler that records the size of each batch.
func newBatchHandler(sizes *[]int) host.BatchHandler {
	return func(_ context.Context, batch []host.Delivery) {
		*sizes = append(*sizes, len(batch))
		for i := range batch {
			batch[i].LogFields.ID = string(batch[i].Message.Body)
			batch[i].Err = errorFor(batch[i].Message)
		}
	}
}

// deliveries sends bodies and receives them together.
func (b *bench) deliveries(t *testing.T, bodies ...string) []queue.Message {
	t.Helper()
	for _, body := range bodies {
		b.PutRaw([]byte(body))
	}
	messages, err := b.Queue.Receive(t.Context(), len(bodies), 0, time.Minute)
	if err != nil || len(messages) != len(bodies) {
		t.Fatalf("receiving gave %d messages: %v", len(messages), err)
	}
	return messages
}

// Each message of a batch gets its own disposition, and dispositions share calls where possible.
func TestProcessMessages(t *testing.T) {
	for _, c := range []struct {
		name   string
		bodies []string
		// again are the messages left in the queue, alone the messages that the single-message handler received.
		again, alone []string
		calls        []string
		dead         int
	}{
		{"one call deletes all", []string{"ok", "stale", "ok"}, nil, nil, []string{"delete 3"}, 0},
		{"one call moves all to the DLQ", []string{"poison", "ok", "poison"}, nil, nil, []string{"delete 1", "send to DLQ 2", "delete 2"}, 2},
		{"one message is retried", []string{"ok", "retry"}, []string{"retry"}, nil, []string{"delete 1", "hide"}, 0},
		{"one message causes a bug", []string{"bug", "ok"}, []string{"bug"}, nil, []string{"delete 1"}, 0},
		{"one message is handled separately", []string{"ok", "alone", "ok"}, nil, []string{"alone"}, []string{"delete 2", "delete 1"}, 0},
		// Messages that the batch handler had not reached when it panicked are handled separately.
		{"one message causes a panic", []string{"ok", "panic", "ok"}, []string{"panic"}, []string{"ok", "panic"}, []string{"delete 1", "delete 1"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			messages := b.deliveries(t, c.bodies...)
			var mu sync.Mutex
			var sizes []int
			var alone, told []string
			w := b.worker(func(_ context.Context, m queue.Message) error {
				mu.Lock()
				alone = append(alone, string(m.Body))
				mu.Unlock()
				if string(m.Body) == "alone" {
					return nil
				}
				return errorFor(m)
			})
			counted := &counting{bench: b}
			w.Queue, w.Dead, w.HandleBatch = counted, countedDLQSender{counted}, newBatchHandler(&sizes)
			w.ErrorLog = &host.RateLimitedLog{Write: func(err error, _ int) { told = append(told, err.Error()) }}
			lines := w.ProcessMessages(t.Context(), messages)
			slices.Sort(alone)
			for i, l := range lines {
				if string(l.Message.Body) != c.bodies[i] || l.DispositionErr != nil {
					t.Errorf("log line %d is for %s: %v", i, l.Message.Body, l.DispositionErr)
				}
			}
			if diff := cmp.Diff(c.alone, alone) + cmp.Diff([]int{len(c.bodies)}, sizes) + cmp.Diff(c.calls, counted.calls); diff != "" {
				t.Error(diff)
			}
			if in, dead := b.left(t); in != len(c.again) || dead != c.dead {
				t.Errorf("%d messages in the queue and %d in the DLQ, want %d and %d", in, dead, len(c.again), c.dead)
			}
			if panicked := slices.Contains(c.bodies, "panic"); panicked != (len(told) == 1) || panicked && !strings.Contains(told[0], "panic: oh") {
				t.Errorf("reported errors %q", told)
			}
			if len(b.lines) != len(c.bodies) {
				t.Errorf("%d lines were logged for %d messages", len(b.lines), len(c.bodies))
			}
		})
	}
}

// The log lines of a batch keep their fields after the handler's memory is reused.
func TestLogLinesKeepFields(t *testing.T) {
	b := newBench()
	w, said := b.worker(returns(nil)), 0
	w.HandleBatch = func(_ context.Context, batch []host.Delivery) {
		for i := range batch {
			if len(batch[i].LogFields.Pairs) > 0 {
				t.Errorf("log fields begin with %v", batch[i].LogFields.Pairs)
			}
			for range i * 2 { // more than the capacity
				said++
				batch[i].LogFields.Add("n", said)
			}
			batch[i].Err = nil
		}
	}
	first := w.ProcessMessages(t.Context(), b.deliveries(t, "a", "b", "c", "d", "e", "f"))
	w.ProcessMessages(t.Context(), b.deliveries(t, "g", "h", "i", "j", "k", "l"))
	want := 0
	for i, l := range first {
		var fields []any
		for range i * 2 {
			want++
			fields = append(fields, "n", want)
		}
		if diff := cmp.Diff(fields, l.LogFields.Pairs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("line %d: %s", i, diff)
		}
	}
}

// counting is a bench's queue that records how many messages each call carried.
type counting struct {
	*bench
	mu     sync.Mutex
	calls  []string
	refuse func(call string, n int) error
}

func (c *counting) call(name string, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		name = fmt.Sprint(name, " ", n)
	}
	c.calls = append(c.calls, name)
	if c.refuse != nil {
		return c.refuse(name, n)
	}
	return nil
}

func (c *counting) Delete(ctx context.Context, receipts ...string) error {
	if err := c.call("delete", len(receipts)); err != nil {
		return err
	}
	return c.Queue.Delete(ctx, receipts...)
}

func (c *counting) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	if err := c.call("hide", 0); err != nil {
		return err
	}
	return c.Queue.Hide(ctx, receipt, visibility)
}

type countedDLQSender struct{ c *counting }

func (l countedDLQSender) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if err := l.c.call("send to DLQ", len(messages)); err != nil {
		return err
	}
	return l.c.dead.Send(ctx, messages...)
}

// If a call is rejected because of one message, it is repeated for each message.
func TestRejectedBatchIsRepeatedSeparately(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   fault.Kind
		bodies []string
		refuse string
		left   int
		undone int
	}{
		{"invalid batch of deletes", fault.Invalid, []string{"ok", "ok", "ok"}, "delete 3", 0, 0},
		{"rejected batch of deletes", fault.Rejected, []string{"ok", "ok", "ok"}, "delete 3", 0, 0},
		{"invalid batch of two deletes", fault.Invalid, []string{"ok", "ok"}, "delete 2", 0, 0},
		{"failing deletes", fault.Retry, []string{"ok", "ok", "ok"}, "delete 3", 3, 3},
		{"invalid batch of DLQ messages", fault.Invalid, []string{"poison", "poison"}, "send to DLQ 2", 0, 0},
		{"failing batch of DLQ messages", fault.Retry, []string{"poison", "poison"}, "send to DLQ 2", 0, 0},
		{"failing DLQ messages", fault.Retry, []string{"poison", "poison"}, "send to DLQ", 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			messages := b.deliveries(t, c.bodies...)
			counted := &counting{bench: b, refuse: func(call string, _ int) error {
				if strings.HasPrefix(call, c.refuse) {
					return fault.F("calling", c.kind, "refused")
				}
				return nil
			}}
			var sizes []int
			w := b.worker(returns(errors.New("handled separately")))
			w.Queue, w.Dead, w.HandleBatch = counted, countedDLQSender{counted}, newBatchHandler(&sizes)
			undone := 0
			for _, l := range w.ProcessMessages(t.Context(), messages) {
				if l.DispositionErr != nil {
					undone++
				}
			}
			if in, _ := b.left(t); in != c.left || undone != c.undone {
				t.Errorf("%d messages in the queue and %d with errors, want %d and %d: %v", in, undone, c.left, c.undone, counted.calls)
			}
		})
	}
}

// Poll passes batches as they were received, runs no more at a time than MaxConcurrent allows messages, and extends
// the visibility of each message while its batch runs.
func TestPollBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		var mu sync.Mutex
		running, most, handled := 0, 0, 0
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if running += n; running > most {
				most = running
			}
		}
		w := b.worker(returns(errors.New("handled separately")))
		b.put(200)
		stop := polling(t, w, host.Options{MaxConcurrent: 30, Receivers: 8, Visibility: 15 * time.Second, HandleBatch: func(_ context.Context, batch []host.Delivery) {
			add(len(batch))
			defer add(-len(batch))
			time.Sleep(20 * time.Second) // beyond the visibility
			for i := range batch {
				batch[i].Err = nil
			}
			mu.Lock()
			defer mu.Unlock()
			handled += len(batch)
		}})
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if most != 30 || handled != 200 {
			t.Errorf("%d handled, at most %d concurrently", handled, most)
		}
		if in, _ := b.left(t); in != 0 {
			t.Errorf("%d messages in the queue", in)
		}
	})
}

// On shutdown a batch gets the grace period; then each of its messages is returned to the queue.
func TestPollStopsBatches(t *testing.T) {
	for _, c := range []struct {
		name string
		runs time.Duration
		took time.Duration
		left int
	}{
		{"a handler that ends within the grace period", 9 * time.Second, 8 * time.Second, 0},
		{"a handler that ignores its context", 50 * time.Second, 17 * time.Second, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.put(3)
				w := b.worker(returns(errors.New("handled separately")))
				w.HandleBatch = func(_ context.Context, batch []host.Delivery) {
					time.Sleep(c.runs)
					for i := range batch {
						batch[i].Err = nil
					}
				}
				stop := polling(t, w, host.Options{Grace: 15 * time.Second})
				time.Sleep(time.Second)
				began := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began).Round(time.Second); took != c.took {
					t.Errorf("shutdown took %s, want %s", took, c.took)
				}
				if visible, hidden, _ := b.Depth(t.Context()); visible != c.left || hidden != 0 {
					t.Errorf("%d messages visible and %d hidden", visible, hidden)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// The throughput guarantees for single messages hold for batches, too.
func TestPollBatchesThroughput(t *testing.T) {
	const n = 20_000
	synctest.Test(t, func(t *testing.T) {
		w := &wire{bench: newBench()}
		w.broker.Queue("q", memqueue.QueueOptions{})
		for range n {
			w.PutRaw([]byte("ok"))
		}
		began := time.Now()
		var mu sync.Mutex
		var last time.Duration
		worker := w.worker(returns(errors.New("handled separately")))
		worker.HandleBatch = func(_ context.Context, batch []host.Delivery) {
			time.Sleep(2 * apiTrip)
			for i := range batch {
				batch[i].Err = nil
			}
		}
		worker.Log = func(host.LogLine) {
			mu.Lock()
			defer mu.Unlock()
			last = time.Since(began)
		}
		stop := polling(t, worker, quick())
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if in, _ := w.left(t); in != 0 || n/last.Seconds() < 4_000 {
			t.Errorf("%d messages in the queue; %.0f messages per second", in, n/last.Seconds())
		}
	})
}
