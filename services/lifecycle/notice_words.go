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

// word is what is told of a notice.
type word struct {
	remark  events.Reason
	message string
}

// words are what is told of each kind of notice.
var words = map[event.NoticeKind]word{
	event.SpotInterruption:        {events.SpotInterrupted, "Spot interruption warning was triggered"},
	event.RebalanceRecommendation: {events.RebalanceRecommended, "Spot rebalance recommendation was triggered"},
	event.ReservationInterruption: {events.ReservationInterrupted, "Capacity Reservation interruption warning was triggered"},
	event.StateChange:             {events.InstanceTerminating, "Instance is terminating"},
	event.ScheduledChange:         {events.InstanceUnhealthy, "An unhealthy warning was triggered for the instance"},
	event.StatusImpaired:          {events.InstanceUnhealthy, "An unhealthy warning was triggered for the instance"},
}

// wordOf tells stopping from terminating. A kind that is not known here is told as
// something unhealthy.
func wordOf(b event.NodeNoticed) word {
	if state := cloud.State(b.Detail); b.Kind == event.StateChange && (state == cloud.Stopping || state == cloud.Stopped) {
		return word{events.InstanceStopping, "Instance is stopping"}
	}
	if w, known := words[b.Kind]; known {
		return w
	}
	return words[event.StatusImpaired]
}

// tell says the notice on the claim, and on its node if there is one.
func (s *Service) tell(c *karpenter.NodeClaim, node *corev1.Node, b event.NodeNoticed) []effect.Effect {
	w := wordOf(b)
	return s.onBoth(w.remark, c, node, w.message, w.message)
}

// terminating says that a notice ends the claim.
func (s *Service) terminating(c *karpenter.NodeClaim, node *corev1.Node) []effect.Effect {
	const message = "Interruption triggered termination for the "
	return s.onBoth(events.TerminatingOnInterruption, c, node, message+"NodeClaim", message+"Node")
}

func (s *Service) onBoth(r events.Reason, c *karpenter.NodeClaim, node *corev1.Node, ofClaim, ofNode string) []effect.Effect {
	said := []effect.Effect{r.About(cluster.NodeClaims, c, s.Now(), "%s", ofClaim)}
	if node != nil {
		said = append(said, r.About(cluster.Nodes, node, s.Now(), "%s", ofNode))
	}
	return said
}
