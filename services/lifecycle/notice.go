package lifecycle

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/shortage"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// reasons are the Kubernetes Event reasons of the notices (B213).
var reasons = map[event.NoticeKind]string{
	event.SpotInterruption:        "SpotInterrupted",
	event.RebalanceRecommendation: "SpotRebalanceRecommendation",
	event.ScheduledChange:         "InstanceUnhealthy",
	event.StateChange:             "InstanceTerminating",
	event.ReservationInterruption: "CapacityReservationInstanceInterrupted",
	event.StatusImpaired:          "InstanceUnhealthy",
}

// obey acts on a notice about one of our claims (B176–B182).
func (s *Service) obey(ctx context.Context, e event.Envelope, claim *karpenter.NodeClaim, b event.NodeNoticed) error {
	report := effect.Report{Event: cluster.Event{
		About: claim, Kind: cluster.NodeClaims, Type: "Warning", Reason: reasons[b.Kind],
		Message: string(b.Kind) + " " + b.Detail, Dedupe: 2 * time.Minute, Now: s.Now(),
	}}
	if b.Kind == event.RebalanceRecommendation {
		// Upstream only says so (B179); acting on it is a policy of its own.
		return s.do.Do(ctx, &e, report)
	}
	if b.Kind == event.SpotInterruption {
		if err := s.leaveAlone(ctx, claim, b); err != nil {
			return err
		}
	}
	effects := []effect.Effect{report}
	if marked, changed := withDeadline(claim, b.Deadline); changed {
		effects = append(effects, effect.Update{Object: marked})
	}
	if claim.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(claim), UID: claim.UID, Why: string(b.Kind)})
	}
	return s.do.Do(ctx, &e, effects...)
}

// leaveAlone keeps the next plan away from the offering that AWS is taking
// back (B176).
func (s *Service) leaveAlone(ctx context.Context, claim *karpenter.NodeClaim, b event.NodeNoticed) error {
	offering := event.Offering{
		InstanceType: claim.Labels["node.kubernetes.io/instance-type"],
		Zone:         claim.Labels["topology.kubernetes.io/zone"],
		CapacityType: claim.Labels[karpenter.CapacityTypeLabelKey],
	}
	if offering.InstanceType == "" {
		offering = b.Offering
	}
	if offering.InstanceType == "" {
		return nil
	}
	fresh := []scheduling.Unavailable{{Offering: offering, Until: s.Now().Add(shortage.TTL).UTC(), Reason: string(b.Kind)}}
	return shortage.Add(ctx, s.Client, s.Namespace, fresh, s.Now())
}

// withDeadline writes the time by which the node must be drained, and never
// moves it later.
func withDeadline(c *karpenter.NodeClaim, deadline time.Time) (*karpenter.NodeClaim, bool) {
	return claim.Sooner(c, deadline)
}
