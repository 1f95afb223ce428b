package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// noticeEvent is the Event of a notice.
type noticeEvent struct {
	reason  events.Reason
	message string
}

// noticeEvents are the Events of each kind of notice.
var noticeEvents = map[event.NoticeKind]noticeEvent{
	event.SpotInterruption:        {events.SpotInterrupted, "Spot interruption warning was triggered"},
	event.RebalanceRecommendation: {events.RebalanceRecommended, "Spot rebalance recommendation was triggered"},
	event.ReservationInterruption: {events.ReservationInterrupted, "Capacity Reservation interruption warning was triggered"},
	event.StateChange:             {events.InstanceTerminating, "Instance is terminating"},
	event.ScheduledChange:         {events.InstanceUnhealthy, "An unhealthy warning was triggered for the instance"},
	event.StatusImpaired:          {events.InstanceUnhealthy, "An unhealthy warning was triggered for the instance"},
}

// noticeEventOf returns the Event of a notice and distinguishes stopping from terminating.
// Unknown kinds are reported as unhealthy.
func noticeEventOf(b event.NodeNoticed) noticeEvent {
	if state := cloud.State(b.Detail); b.Kind == event.StateChange && (state == cloud.Stopping || state == cloud.Stopped) {
		return noticeEvent{events.InstanceStopping, "Instance is stopping"}
	}
	if w, known := noticeEvents[b.Kind]; known {
		return w
	}
	return noticeEvents[event.StatusImpaired]
}

// reportNotice returns the Events of the notice on the claim and its node.
func (s *Service) reportNotice(c *karpenter.NodeClaim, node *corev1.Node, b event.NodeNoticed) []effect.Effect {
	w := noticeEventOf(b)
	return s.claimAndNodeEvents(w.reason, c, node, w.message, w.message)
}

// reportTermination returns the Events that a notice terminates the claim.
func (s *Service) reportTermination(c *karpenter.NodeClaim, node *corev1.Node) []effect.Effect {
	const message = "Interruption triggered termination for the "
	return s.claimAndNodeEvents(events.TerminatingOnInterruption, c, node, message+"NodeClaim", message+"Node")
}

func (s *Service) claimAndNodeEvents(r events.Reason, c *karpenter.NodeClaim, node *corev1.Node, ofClaim, ofNode string) []effect.Effect {
	effects := []effect.Effect{r.About(cluster.NodeClaims, c, s.Now(), "%s", ofClaim)}
	if node != nil {
		effects = append(effects, r.About(cluster.Nodes, node, s.Now(), "%s", ofNode))
	}
	return effects
}
