package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

const (
	// Inbox is how many facts may be on their way at a time. Nearly all of them wait
	// for their turn: it is so many lest a notice waits behind them in the queue.
	Inbox = 1024
	// InboxDeadline is how long a fact may wait for its turn, and be dealt with.
	InboxDeadline = 5 * time.Minute
	// factLimit is how long dealing with one may take.
	factLimit = time.Minute
)

// Lanes lets facts through to Handle. News of one instance waits for nothing, since
// an instance that is noticed has two minutes at most: it writes one claim and one
// node, and each write is refused if something else has changed the same
// meanwhile. All other facts wait for each other, so that no more than one of them
// at a time stands before the next look at the gate; those about proposals that wait
// share a turn.
func (s *Service) Lanes(gate host.Gate) func(ctx context.Context, e event.Envelope) error {
	facts, inventories := host.NewGate(), &newest{}
	turn := func(ctx context.Context, act func(context.Context) error) error {
		return facts.Do(ctx, gate.Behind(act))
	}
	proposals := s.proposals(turn)
	return func(ctx context.Context, e event.Envelope) error {
		came := s.Now()
		switch e.Type {
		case event.NodeNoticedType, event.InstanceGoneType:
			return s.timely(ctx, e)
		case event.DisruptionProposedType:
			return proposals.deal(ctx, e, came)
		}
		taken := inventories.arrives(e, came)
		return turn(ctx, func(ctx context.Context) error {
			host.Say(ctx, "waited_ms", s.Now().Sub(came).Milliseconds())
			if inventories.after(taken) {
				return fault.F("comparing an inventory", fault.Stale, "a newer one came while it waited for its turn")
			}
			return s.timely(ctx, e)
		})
	}
}

// timely handles a fact within its limit.
func (s *Service) timely(ctx context.Context, e event.Envelope) error {
	ctx, cancel := context.WithTimeout(ctx, factLimit)
	defer cancel()
	return s.Handle(ctx, e)
}

// newest is when the newest inventory was taken that has arrived.
type newest struct {
	mu    sync.Mutex
	taken time.Time
}

// arrives gives the time at which an inventory was taken, and remembers the newest;
// of everything else it is zero, and of an inventory that is refused for its time.
func (n *newest) arrives(e event.Envelope, now time.Time) (taken time.Time) {
	listed, err := event.As[event.InstancesListed](e)
	if e.Type != event.InstancesListedType || err != nil || garbagecollection.CheckStart(listed.Started, now) != nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if listed.Started.After(n.taken) {
		n.taken = listed.Started
	}
	return listed.Started
}

// after reports whether a newer inventory has arrived than that of the time. One
// with nobody's time is no inventory.
func (n *newest) after(taken time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !taken.IsZero() && n.taken.After(taken)
}
