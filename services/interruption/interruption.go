// Package interruption receives AWS's interruption events and publishes facts about the cluster's
// own instances. Only this service decodes AWS's events.
//   - Each message becomes a notice, or is foreign, stale or poison. One message cannot block another.
//   - A deadline is absolute: the event's time plus AWS's warning period. The event's time cannot be
//     later than the time at which the queue received it.
//   - Facts are published only about instances that EC2 returns with the cluster's tags, except that an
//     instance which is terminated and no longer returned is gone.
//   - AWS delivers events with best effort, so the instance status is polled as well.
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

// Types are the types of Joist's own messages that interruption consumes, in addition to
// AWS's events.
var Types = []event.Type{event.TickType}

// Service handles the messages of interruption. All handlers of a process must share one
// Service, because they share its cache and its calls.
type Service struct {
	EC2      cloud.Instances
	Statuses cloud.Statuses
	Bus      queue.Sender
	Cluster  event.Cluster
	// Account and Region select the events that are handled; empty means any.
	Account, Region string
	Now             func() time.Time
	// Limit is the timeout of one call to EC2 or to the bus; zero means none.
	Limit time.Duration
	// Span receives the first span of an interruption's trace; nil disables traces.
	Span func(host.Span)
	// Samples is that of event.Maker.
	Samples func(traceID string) bool

	once   sync.Once
	finder *owner.Finder
	// errForeign is the result of most messages, because the rules match the whole
	// account. All of them share one error to save allocations.
	errForeign error
}

// ownerFinder finds the owners of instances.
func (s *Service) ownerFinder() *owner.Finder {
	s.initialize()
	return s.finder
}

// foreignError returns the error for an event about instances of another owner.
func (s *Service) foreignError() error {
	s.initialize()
	return s.errForeign
}

func (s *Service) initialize() {
	s.once.Do(func() {
		s.finder = &owner.Finder{EC2: s.EC2, Cluster: s.Cluster.Name, Now: s.Now, Limit: s.Limit}
		s.errForeign = fault.F("finding the owner", fault.Foreign, "no instance of the notice belongs to cluster %s", s.Cluster.Name)
	})
}

// Handle handles one message: an AWS event or an envelope. It is a host.Handler.
func (s *Service) Handle(ctx context.Context, m queue.Message) error {
	batch := [1]host.Delivery{{Message: m, Err: host.ErrNotBatched}}
	s.Batch(ctx, batch[:])
	if d := &batch[0]; !errors.Is(d.Err, host.ErrNotBatched) {
		host.SetLogFields(ctx, d.LogFields)
		return d.Err
	}
	return host.NewEventHandler(host.EnvelopeFilter{Cluster: s.Cluster, Types: Types, Now: s.Now}, s.handleEnvelope)(ctx, m)
}

// source is the source of the published facts.
const source = "joist/interruption"

func (s *Service) eventMaker() event.Maker {
	return event.Maker{Service: "interruption", Cluster: s.Cluster, Samples: s.Samples}
}

// typeLabels are the types of AWS events in logs and metrics. A message cannot add a type.
var typeLabels = func() map[event.NoticeKind]string {
	all := map[event.NoticeKind]string{"": "aws.other"}
	for _, kind := range notice.Kinds() {
		all[kind] = "aws." + string(kind)
	}
	return all
}()

// handleEnvelope handles a tick.
func (s *Service) handleEnvelope(ctx context.Context, e event.Envelope) error {
	tick, err := event.DecodeBody[event.Tick](e)
	if err != nil {
		return err
	}
	if tick.Want != event.WantStatus {
		return nil
	}
	return s.pollStatuses(ctx, e, tick)
}

// publishFacts publishes the facts that a tick caused.
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
	messages, err := queue.EncodeEnvelopes(facts...)
	if err != nil {
		return err
	}
	return s.sendFacts(ctx, messages)
}

// sendFacts sends facts to the bus in full calls, so that the remainder can share a call
// with other batches.
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

// checkOrigin returns fault.Foreign for an event about instances of another account or region.
func (s *Service) checkOrigin(n *notice.Notice) error {
	differs := func(have, want string) bool { return have != "" && want != "" && have != want }
	if differs(n.Account, s.Account) || differs(n.Region, s.Region) {
		return fault.F("reading a notice", fault.Foreign, "its instances are in account %s in %s, and this service handles account %s in %s",
			n.Account, n.Region, s.Account, s.Region)
	}
	return nil
}
