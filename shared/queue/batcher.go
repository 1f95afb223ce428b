package queue

import (
	"context"

	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

// BatchCalls returns a queue whose concurrent deletes share calls, and whose concurrent sends share calls: ten
// messages take the time and the price of one. At most lanes calls of each kind are in flight. A single caller is not
// delayed.
func BatchCalls(q Queue, lanes int) Queue {
	return batchedQueue{
		Queue: q,
		sends: newSendBatcher(q, lanes),
		deletes: batcher.New(batcher.Options[string]{
			MaxCalls: lanes, MaxItems: MaxBatch,
			Call: func(ctx context.Context, receipts []string) error { return q.Delete(ctx, receipts...) },
		}),
	}
}

// BatchSends returns a sender whose concurrent sends share calls of at most MaxBatch messages and MaxBody bytes. At
// most lanes calls are in flight.
func BatchSends(s Sender, lanes int) Sender { return batchedSender{newSendBatcher(s, lanes)} }

func newSendBatcher(s Sender, lanes int) *batcher.CallBatcher[Outgoing] {
	return batcher.New(batcher.Options[Outgoing]{
		MaxCalls: lanes, MaxItems: MaxBatch, MaxWeight: MaxBody, ItemWeight: Outgoing.Size,
		Call: func(ctx context.Context, messages []Outgoing) error { return s.Send(ctx, messages...) },
	})
}

type batchedQueue struct {
	Queue
	sends   *batcher.CallBatcher[Outgoing]
	deletes *batcher.CallBatcher[string]
}

func (g batchedQueue) Send(ctx context.Context, messages ...Outgoing) error {
	return g.sends.Do(ctx, messages...)
}

func (g batchedQueue) Delete(ctx context.Context, receipts ...string) error {
	return g.deletes.Do(ctx, receipts...)
}

type batchedSender struct {
	sends *batcher.CallBatcher[Outgoing]
}

func (g batchedSender) Send(ctx context.Context, messages ...Outgoing) error {
	return g.sends.Do(ctx, messages...)
}
