package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

var ours = event.Cluster{Name: "prod", UID: "uid-1"}

// tick returns an encoded envelope of the cluster, modified by change.
func tick(t *testing.T, now time.Time, change func(*event.Envelope)) []byte {
	t.Helper()
	maker := event.Maker{Service: "scheduler", Cluster: ours}
	e, err := maker.New(now, event.Tick{Want: event.WantTemplates, Due: now}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&e)
	}
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// bench is a queue with a DLQ on the clock of time.Now, which synctest makes virtual, and a log of
// calls.
type bench struct {
	*memqueue.Queue
	broker *memqueue.Broker
	dead   *memqueue.Queue

	mu       sync.Mutex
	calls    []string
	lines    []host.LogLine
	fail     error // the error that Receive returns
	failures int   // how many times Receive fails; -1 is always
	refuse   error // the error that Delete and DLQ sends return
	noHide   error // the error that Hide returns
	sent     int   // the size of the last DLQ message
}

func newBench() *bench {
	b := &bench{}
	b.broker = memqueue.New(memqueue.Options{Now: time.Now, Seed: 1, Idle: func(ctx context.Context, until time.Time) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Until(until), 100*time.Millisecond)):
			return nil
		}
	}})
	b.dead = b.broker.Queue("dead", memqueue.QueueOptions{})
	b.Queue = b.broker.Queue("q", memqueue.QueueOptions{})
	return b
}

func (b *bench) worker(handle host.Handler) host.Worker {
	return host.Worker{Service: "planner", Queue: b, Dead: dlqSender{b}, Handle: handle, Now: time.Now, Log: func(l host.LogLine) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, l)
	}}
}

func (b *bench) called(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, fmt.Sprintf(format, args...))
}

func (b *bench) log() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// Receive counts the call and fails if the bench is set to.
func (b *bench) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	b.mu.Lock()
	fail := b.fail
	if b.failures == 0 {
		fail = nil
	} else {
		b.failures--
	}
	b.mu.Unlock()
	if fail != nil {
		b.called("receive failed")
		return nil, fail
	}
	b.called("receive %d for %s", limit, visibility)
	return b.Queue.Receive(ctx, limit, wait, visibility)
}

func (b *bench) Delete(ctx context.Context, receipts ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.called("delete")
	if b.refuse != nil {
		return b.refuse
	}
	return b.Queue.Delete(ctx, receipts...)
}

func (b *bench) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.called("hide %s", visibility)
	if b.noHide != nil {
		return b.noHide
	}
	return b.Queue.Hide(ctx, receipt, visibility)
}

// dlqSender is the bench's DLQ.
type dlqSender struct{ b *bench }

func (l dlqSender) Send(ctx context.Context, messages ...queue.Outgoing) error {
	l.b.called("send to DLQ")
	if l.b.refuse != nil {
		return l.b.refuse
	}
	l.b.sent = messages[len(messages)-1].Size()
	return l.b.dead.Send(ctx, messages...)
}

// deliver puts a body into the queue and receives it.
func (b *bench) deliver(t *testing.T, body []byte) queue.Message {
	t.Helper()
	b.PutRaw(body)
	messages, err := b.Queue.Receive(t.Context(), 1, 0, time.Minute)
	if err != nil || len(messages) != 1 {
		t.Fatalf("receiving gave %d messages: %v", len(messages), err)
	}
	return messages[0]
}

var errAway = errors.New("away")
