package queue

import (
	"context"

	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

// BatchCalls lets those who delete from the queue at the same time share calls, and
// likewise those who send to it: ten messages travel in the time and at the
// price of one. At most lanes calls of each are under way. A lone caller notices
// nothing.
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

// BatchSends lets those who send at the same time share calls, of at most
// MaxBatch messages and MaxBody bytes.
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
