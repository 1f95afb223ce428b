package queue

import (
	"context"

	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

// Gather lets those who delete from the queue at the same time share calls, and
// likewise those who send to it: ten messages travel in the time and at the
// price of one. At most lanes calls of each are under way. A lone caller notices
// nothing.
func Gather(q Queue, lanes int) Queue {
	return gathered{
		Queue: q,
		sends: sends(q, lanes),
		deletes: batcher.New(batcher.Options[string]{
			Lanes: lanes, Items: MaxBatch,
			Call: func(ctx context.Context, receipts []string) error { return q.Delete(ctx, receipts...) },
		}),
	}
}

// GatherSender lets those who send at the same time share calls, of at most
// MaxBatch messages and MaxBody bytes.
func GatherSender(s Sender, lanes int) Sender { return gatheredSender{sends(s, lanes)} }

func sends(s Sender, lanes int) *batcher.Convoy[Outgoing] {
	return batcher.New(batcher.Options[Outgoing]{
		Lanes: lanes, Items: MaxBatch, Weight: MaxBody, Weigh: Outgoing.Size,
		Call: func(ctx context.Context, messages []Outgoing) error { return s.Send(ctx, messages...) },
	})
}

type gathered struct {
	Queue
	sends   *batcher.Convoy[Outgoing]
	deletes *batcher.Convoy[string]
}

func (g gathered) Send(ctx context.Context, messages ...Outgoing) error {
	return g.sends.Do(ctx, messages...)
}

func (g gathered) Delete(ctx context.Context, receipts ...string) error {
	return g.deletes.Do(ctx, receipts...)
}

type gatheredSender struct{ sends *batcher.Convoy[Outgoing] }

func (g gatheredSender) Send(ctx context.Context, messages ...Outgoing) error {
	return g.sends.Do(ctx, messages...)
}
