package interrupted

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Scene has the latencies of the calls.
type Scene struct {
	// QueueTrip is the latency of a call to SQS, and APITrip that of a call to another
	// API.
	QueueTrip, APITrip time.Duration
}

// link delays calls, and can be cut; a call then fails after the delay.
type link struct {
	trip time.Duration
	cut  atomic.Bool
}

var errCut = errors.New("no route to host")

func (l *link) pass(ctx context.Context) error {
	if l.trip > 0 {
		timer := time.NewTimer(l.trip)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if l.cut.Load() {
		return errCut
	}
	return nil
}

// far is a queue behind a link.
type far struct {
	*memqueue.Queue
	link *link
	// deleted counts the deleted receipts.
	deleted *atomic.Int64
}

func (f far) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := f.link.pass(ctx); err != nil {
		return nil, err
	}
	return f.Queue.Receive(ctx, limit, wait, visibility)
}

func (f far) Delete(ctx context.Context, receipts ...string) error {
	if err := f.link.pass(ctx); err != nil {
		return err
	}
	if err := f.Queue.Delete(ctx, receipts...); err != nil {
		return err
	}
	f.deleted.Add(int64(len(receipts)))
	return nil
}

func (f far) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	if err := f.link.pass(ctx); err != nil {
		return err
	}
	return f.Queue.Hide(ctx, receipt, visibility)
}

func (f far) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if err := f.link.pass(ctx); err != nil {
		return err
	}
	return f.Queue.Send(ctx, messages...)
}

// bench has one side's queues and links.
type bench struct {
	broker      *memqueue.Broker
	queue, dead *memqueue.Queue
	toQueue     link
	toAPI       link
	// deleted counts the processed messages. The model's own count iterates over all
	// messages.
	deleted atomic.Int64
}

func (b *bench) far() far { return far{b.queue, &b.toQueue, &b.deleted} }

// newBench returns a bench with empty queues. Receive polls, because the model cannot
// notify it of a message that arrives meanwhile.
func newBench(s Scene) *bench {
	const step = 10 * time.Millisecond
	b := &bench{broker: memqueue.New(memqueue.Options{Now: time.Now, Seed: 1, Idle: func(ctx context.Context, until time.Time) error {
		timer := time.NewTimer(min(time.Until(until), step))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})}
	b.dead = b.broker.Queue("dead", memqueue.QueueOptions{})
	b.queue = b.broker.Queue("notices", memqueue.QueueOptions{MaxReceives: 1000, DeadLetter: "dead"})
	b.toQueue.trip, b.toAPI.trip = s.QueueTrip, s.APITrip
	return b
}
