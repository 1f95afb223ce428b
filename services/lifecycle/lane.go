package lifecycle

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

const (
	// Inbox is how many facts may be on their way at a time. Nearly all of them wait
	// for their turn: it is so many lest a notice waits behind them in the queue.
	Inbox = 64
	// InboxDeadline is how long a fact may wait for its turn, and be dealt with.
	InboxDeadline = 5 * time.Minute
	// factLimit is how long dealing with one may take.
	factLimit = time.Minute
)

// Lanes lets facts through to Handle. A notice waits for nothing, since an instance
// has two minutes at most: it writes one claim and one node, and each write is
// refused if something else has changed the same meanwhile. All other facts wait
// for each other, so that no more than one of them at a time stands before the
// next look at the gate.
func (s *Service) Lanes(gate host.Gate) func(ctx context.Context, e event.Envelope) error {
	facts := host.NewGate()
	return func(ctx context.Context, e event.Envelope) error {
		came := time.Now()
		deal := func(ctx context.Context) error {
			host.Say(ctx, "waited_ms", time.Since(came).Milliseconds())
			ctx, cancel := context.WithTimeout(ctx, factLimit)
			defer cancel()
			return s.Handle(ctx, e)
		}
		if e.Type == event.NodeNoticedType {
			return deal(ctx)
		}
		return facts.Do(ctx, gate.Behind(deal))
	}
}
