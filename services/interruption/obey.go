package interruption

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// Settle is how long after an event EC2's answers may still be older than it:
// an instance may not be shown, or be shown in an earlier state.
const Settle = 2 * time.Minute

// obey says what an event of AWS means for the cluster.
func (s *Service) obey(ctx context.Context, n notice.Notice) error {
	host.Say(ctx, "notice", string(n.Kind), "detail", n.Detail, "instances", len(n.Instances))
	if err := s.elsewhere(n); err != nil {
		return err
	}
	if age := s.Now().Sub(n.Noticed); age > life(n) {
		return fault.F("obeying a notice", fault.Stale, "%s is %s old", n.Kind, age.Round(time.Second))
	}
	ours, unseen, err := s.find(ctx, n.Instances)
	if err != nil {
		return err
	}
	host.Say(ctx, "ours", len(ours), "unseen", unseen)
	if n.State.Gone() {
		return s.ended(ctx, n, ours, unseen)
	}
	if err := s.publish(ctx, nil, noticed(n, ours)...); err != nil {
		return err
	}
	switch {
	case unseen > 0 && s.young(n):
		return fault.F("finding the owner", fault.Retry, "EC2 does not show %d of %d instances yet", unseen, len(n.Instances))
	case len(ours) == 0:
		return fault.F("finding the owner", fault.Foreign, "no instance of the notice is of cluster %s", s.Cluster.Name)
	default:
		return nil
	}
}

// ended takes the word that an instance is terminated. It is passed on once EC2
// shows it so, or has forgotten the instance; whose it was cannot be told then,
// and lifecycle drops what none of its claims has.
func (s *Service) ended(ctx context.Context, n notice.Notice, ours map[string]cloud.Instance, unseen int) error {
	id := n.Instances[0]
	instance, mine := ours[id]
	switch {
	case mine && instance.State.Gone():
		facts := append(noticed(n, ours), event.InstanceGone{InstanceID: id, Shown: s.Now().UTC()})
		return s.publish(ctx, nil, facts...)
	case (mine || unseen > 0) && s.young(n):
		return fault.F("looking for the end of "+id, fault.Retry, "EC2 does not show it terminated yet")
	case mine:
		return fault.F("looking for the end of "+id, fault.Stale, "EC2 still shows it %s", instance.State)
	case unseen > 0:
		return s.publish(ctx, nil, event.InstanceGone{InstanceID: id, Shown: n.Noticed})
	default:
		return fault.F("finding the owner", fault.Foreign, "instance %s is not of cluster %s", id, s.Cluster.Name)
	}
}

// young reports whether EC2's answers may still be older than the event.
func (s *Service) young(n notice.Notice) bool { return s.Now().Sub(n.Noticed) < Settle }

// life is how long an event means something: as long as the fact that it
// becomes. Afterwards the status poll and the inventory know better.
func life(n notice.Notice) time.Duration {
	fact := event.NodeNoticedType
	if n.State.Gone() {
		fact = event.InstanceGoneType
	}
	spec, err := fact.Spec()
	if err != nil {
		return 0 // Not reached: both are types of ours.
	}
	return spec.TTL
}

// noticed makes a fact for each of our instances, in the notice's order.
func noticed(n notice.Notice, ours map[string]cloud.Instance) []event.Body {
	var out []event.Body
	for _, id := range n.Instances {
		i, mine := ours[id]
		if !mine {
			continue
		}
		out = append(out, event.NodeNoticed{
			Kind: n.Kind, InstanceID: id, Deadline: n.Deadline, Noticed: n.Noticed, Detail: n.Detail,
			Offering: event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType},
		})
	}
	return out
}
