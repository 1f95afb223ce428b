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
	// MaxInFlight is how many messages may be in flight. Most of them wait for their turn; the
	// number is high so that interruption notices do not wait behind them in the queue.
	MaxInFlight = 1024
	// InboxTimeout is how long a message may wait for its turn and be handled.
	InboxTimeout = 5 * time.Minute
	// handleTimeout is how long the handling of one message may take.
	handleTimeout = time.Minute
)

// runInTurn runs a function that changes claims when all earlier ones have ended.
type runInTurn func(context.Context, func(context.Context) error) error

// ConcurrentHandler returns the message handler for concurrent use. Messages about one instance are
// handled at once: an interrupted instance has two minutes at most, and each message writes one
// claim and one node by compare-and-swap. All other messages are handled one after the other, so
// that at most one of them waits for a reconcile to end. Messages about proposals share a turn, and so do launch results.
func (s *Service) ConcurrentHandler(gate host.Mutex) func(ctx context.Context, e event.Envelope) error {
	facts, inventories := host.NewMutex(), &latestInventory{}
	turn := func(ctx context.Context, act func(context.Context) error) error {
		return facts.RunLocked(ctx, gate.WrapLocked(act))
	}
	proposals, handleLaunchResult := s.newProposalQueue(turn), s.newLaunchResultQueue(turn)
	return func(ctx context.Context, e event.Envelope) error {
		came := s.Now()
		switch e.Type {
		case event.NodeNoticedType, event.InstanceGoneType:
			return s.handleWithTimeout(ctx, e)
		case event.DisruptionProposedType:
			return proposals.handle(ctx, e, came)
		case event.LaunchSettledType:
			return handleLaunchResult(ctx, e, came)
		}
		taken := inventories.recordArrival(e, came)
		return turn(ctx, func(ctx context.Context) error {
			host.AddLogFields(ctx, "waited_ms", s.Now().Sub(came).Milliseconds())
			if inventories.isSuperseded(taken) {
				return fault.F("comparing an inventory", fault.Stale, "a newer inventory arrived while this one waited")
			}
			return s.handleWithTimeout(ctx, e)
		})
	}
}

// handleWithTimeout handles a message within handleTimeout.
func (s *Service) handleWithTimeout(ctx context.Context, e event.Envelope) error {
	ctx, cancel := context.WithTimeout(ctx, handleTimeout)
	defer cancel()
	return s.Handle(ctx, e)
}

// latestInventory is the start time of the newest inventory that has arrived.
type latestInventory struct {
	mu      sync.Mutex
	started time.Time
}

// recordArrival returns the start time of an inventory and records the newest. It returns zero
// for all other messages, and for an inventory with an invalid time.
func (n *latestInventory) recordArrival(e event.Envelope, now time.Time) (taken time.Time) {
	listed, err := event.DecodeBody[event.InstancesListed](e)
	if e.Type != event.InstancesListedType || err != nil || garbagecollection.CheckStart(listed.Started, now) != nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if listed.Started.After(n.started) {
		n.started = listed.Started
	}
	return listed.Started
}

// isSuperseded reports whether a newer inventory has arrived. It is false for the zero time.
func (n *latestInventory) isSuperseded(taken time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !taken.IsZero() && n.started.After(taken)
}
