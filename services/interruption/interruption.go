// Package interruption reads what AWS is about to take away, and says it of the
// cluster's own instances alone. It is the one place in which AWS's events are
// decoded.
//
// The invariants:
//
//   - Any bytes are a notice, or are foreign, stale or poison. One message
//     cannot hold up another.
//   - A deadline is absolute: the event's own time plus what AWS promises.
//   - Nothing is said of an instance that EC2 does not show with the cluster's
//     tags, except that one which EC2 called terminated, and has forgotten, is
//     gone.
//   - Events are best effort at their source, so the status checks are polled
//     too, and say the same.
package interruption

import (
	"context"
	"encoding/json"
	"fmt"
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
// Service among handlers so that they share the memory.
type Service struct {
	EC2      cloud.Instances
	Statuses cloud.Statuses
	Bus      queue.Sender
	Cluster  event.Cluster
	// Account and Region are whose events are taken; empty means any.
	Account, Region string
	Now             func() time.Time

	strangers owner.Book
}

// Handle takes one message as it lies in the queue: an event of AWS, or an
// envelope. It is a host.Handler.
func (s *Service) Handle(ctx context.Context, m queue.Message) error {
	if err := event.CheckLimits(m.Body); err != nil {
		return err
	}
	// A body that is no object decodes into nothing here, and fails below.
	var ours struct {
		SpecVersion *string `json:"specversion"`
	}
	if err := json.Unmarshal(m.Body, &ours); err == nil && ours.SpecVersion != nil {
		return host.Events(host.Accept{Cluster: s.Cluster, Types: Types, Now: s.Now}, s.envelope)(ctx, m)
	}
	n, err := notice.Parse(m.Body)
	if err != nil {
		return err
	}
	return s.obey(ctx, n)
}

// envelope takes a tick.
func (s *Service) envelope(ctx context.Context, e event.Envelope) error {
	tick, err := event.As[event.Tick](e)
	if err != nil {
		return err
	}
	if tick.Want != event.WantStatus {
		return nil
	}
	return s.poll(ctx, e, tick)
}

// publish says facts that cause led to; an event of AWS is no cause with an id
// of ours, and then cause is nil.
func (s *Service) publish(ctx context.Context, cause *event.Envelope, bodies ...event.Body) error {
	maker := event.Maker{Service: "interruption", Cluster: s.Cluster}
	facts := make([]event.Envelope, 0, len(bodies))
	for _, body := range bodies {
		fact, err := maker.New(s.Now(), body, cause)
		if err != nil {
			return err
		}
		facts = append(facts, fact)
	}
	if err := queue.Publish(ctx, s.Bus, facts...); err != nil {
		return fmt.Errorf("publishing %d facts: %w", len(facts), err)
	}
	return nil
}

// chunk is how many ids one call to EC2 asks for.
const chunk = 200

// find looks instances up: ours by id, and of how many EC2 shows no owner. Those
// that are known to be somebody else's are not asked for again.
func (s *Service) find(ctx context.Context, ids []string) (ours map[string]cloud.Instance, unseen int, err error) {
	ours = map[string]cloud.Instance{}
	var ask []string
	for _, id := range ids {
		if !s.strangers.Foreign(id) {
			ask = append(ask, id)
		}
	}
	unseen = len(ask)
	for len(ask) > 0 {
		part := ask[:min(chunk, len(ask))]
		ask = ask[len(part):]
		found, err := s.EC2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: part})
		if err != nil {
			return nil, 0, fmt.Errorf("describing %d instances of a notice: %w", len(part), err)
		}
		for _, i := range found {
			switch {
			case owner.Owned(i, s.Cluster.Name):
				ours[i.ID] = i
			case i.State.Gone() && len(i.Tags) == 0:
				// EC2 takes the tags off what is terminated, a while before it
				// forgets it. Whose it was cannot be told any more.
				continue
			default:
				s.strangers.Strange(i.ID)
			}
			unseen--
		}
	}
	return ours, unseen, nil
}

// elsewhere refuses an event of another account or region.
func (s *Service) elsewhere(n notice.Notice) error {
	if s.Account != "" && n.Account != s.Account || s.Region != "" && n.Region != s.Region {
		return fault.F("reading a notice", fault.Foreign, "it is of account %s in %s, and this service serves %s in %s",
			n.Account, n.Region, s.Account, s.Region)
	}
	return nil
}
