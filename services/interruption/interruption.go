// Package interruption reads what AWS is about to take away, and says it of the
// cluster's own instances alone. It is the one place in which AWS's events are
// decoded.
//
// The invariants:
//
//   - Any bytes are a notice, or are foreign, stale or poison. One message
//     cannot hold up another.
//   - A deadline is absolute: when AWS said so plus what AWS promises. AWS cannot
//     have said so later than the queue took it.
//   - Nothing is said of an instance that EC2 does not show with the cluster's
//     tags, except that one which EC2 called terminated, and has forgotten, is
//     gone.
//   - Events are best effort at their source, so the status checks are polled
//     too, and say the same.
package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the envelopes of our own that interruption takes beside AWS's
// events.
var Types = []event.Type{event.TickType}

// Service is interruption over its ports. Its zero memory is valid; share one
// Service among handlers so that they share the memory, and its calls.
type Service struct {
	EC2      cloud.Instances
	Statuses cloud.Statuses
	Bus      queue.Sender
	Cluster  event.Cluster
	// Account and Region are whose events are taken; empty means any.
	Account, Region string
	Now             func() time.Time
	// Limit is how long one call to EC2 or to the bus may take; zero is as long as
	// it likes.
	Limit time.Duration
	// Span hears of what AWS said, as what begins the story of an instance's end; nil
	// hears nothing.
	Span func(host.Span)

	once   sync.Once
	finder *owner.Finder
	// errForeign is the fate of most messages, for the rules see the whole account. It
	// is one error for all of them.
	errForeign error
}

// ownerFinder finds out whose instances are whose.
func (s *Service) ownerFinder() *owner.Finder {
	s.initialize()
	return s.finder
}

// foreignError is the error of a notice about somebody else's instances.
func (s *Service) foreignError() error {
	s.initialize()
	return s.errForeign
}

func (s *Service) initialize() {
	s.once.Do(func() {
		s.finder = &owner.Finder{EC2: s.EC2, Cluster: s.Cluster.Name, Now: s.Now, Limit: s.Limit}
		s.errForeign = fault.F("finding the owner", fault.Foreign, "no instance of the notice is of cluster %s", s.Cluster.Name)
	})
}

// Handle takes one message as it lies in the queue: an event of AWS, or an
// envelope. It is a host.Handler.
func (s *Service) Handle(ctx context.Context, m queue.Message) error {
	batch := [1]host.Delivery{{Message: m, Err: host.ErrAlone}}
	s.Batch(ctx, batch[:])
	if d := &batch[0]; !errors.Is(d.Err, host.ErrAlone) {
		host.Noted(ctx, d.Note)
		return d.Err
	}
	return host.Events(host.Accept{Cluster: s.Cluster, Types: Types, Now: s.Now}, s.handleEnvelope)(ctx, m)
}

// source is where the facts come from.
const source = "joist/interruption"

func (s *Service) eventMaker() event.Maker {
	return event.Maker{Service: "interruption", Cluster: s.Cluster}
}

// typeLabels are the types by which lines and metrics know an event of AWS: these
// few, whatever is in the message.
var typeLabels = func() map[event.NoticeKind]string {
	all := map[event.NoticeKind]string{"": "aws.other"}
	for _, kind := range notice.Kinds() {
		all[kind] = "aws." + string(kind)
	}
	return all
}()

// handleEnvelope takes a tick.
func (s *Service) handleEnvelope(ctx context.Context, e event.Envelope) error {
	tick, err := event.As[event.Tick](e)
	if err != nil {
		return err
	}
	if tick.Want != event.WantStatus {
		return nil
	}
	return s.pollStatuses(ctx, e, tick)
}

// publishFacts says facts that a tick led to.
func (s *Service) publishFacts(ctx context.Context, cause *event.Envelope, bodies ...event.Body) error {
	maker := s.eventMaker()
	facts := make([]event.Envelope, 0, len(bodies))
	for _, body := range bodies {
		fact, err := maker.New(s.Now(), body, cause)
		if err != nil {
			return err
		}
		facts = append(facts, fact)
	}
	messages, err := queue.Envelopes(facts...)
	if err != nil {
		return err
	}
	return s.sendFacts(ctx, messages)
}

// sendFacts hands facts to the bus: as many at once as a call carries, so that the rest
// can share one with others.
func (s *Service) sendFacts(ctx context.Context, facts []queue.Outgoing) error {
	if len(facts) == 0 {
		return nil
	}
	if s.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, s.Limit)
		defer cancel()
		ctx = limited
	}
	for part := range slices.Chunk(facts, queue.MaxBatch) {
		if err := s.Bus.Send(ctx, part...); err != nil {
			return fmt.Errorf("publishing %d facts: %w", len(facts), err)
		}
	}
	return nil
}

// checkOrigin refuses an event that says that it is of another account or region.
func (s *Service) checkOrigin(n *notice.Notice) error {
	other := func(said, ours string) bool { return said != "" && ours != "" && said != ours }
	if other(n.Account, s.Account) || other(n.Region, s.Region) {
		return fault.F("reading a notice", fault.Foreign, "it is of account %s in %s, and this service serves %s in %s",
			n.Account, n.Region, s.Account, s.Region)
	}
	return nil
}
