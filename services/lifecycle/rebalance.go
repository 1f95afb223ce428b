package lifecycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// RebalancePolicy defines how a node is handled after a rebalance recommendation: its spot instance
// has an elevated risk of interruption. Every policy publishes the recommendation as an Event.
type RebalancePolicy string

// The policies. The empty one is RebalanceIgnore, which is Karpenter's behavior.
const (
	// RebalanceIgnore only publishes the Event.
	RebalanceIgnore RebalancePolicy = "ignore"
	// RebalanceCordon cordons the node.
	RebalanceCordon RebalancePolicy = "cordon"
	// RebalanceReplace replaces the node before the interruption warning. Capacity for its pods is
	// planned at once. When that capacity is initialized, or after a timeout, the pods are evicted
	// without a deadline, within their PodDisruptionBudgets.
	RebalanceReplace RebalancePolicy = "replace"
)

// handleRebalance handles a recommendation that was published as an Event.
func (s *Service) handleRebalance(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, node *corev1.Node, effects []effect.Effect) error {
	switch {
	case s.Rebalance == RebalanceReplace:
		if marked, changed := nodeclaim.WithRebalance(c, s.Now()); changed {
			s.keepTrace(marked, e)
			effects = append(effects, effect.Update{Object: marked})
		}
		return s.deleteInterrupted(ctx, e, c, node, effects, event.RebalanceRecommendation)
	case s.Rebalance == RebalanceCordon && node != nil && !node.Spec.Unschedulable:
		cordoned := node.DeepCopy()
		cordoned.Spec.Unschedulable = true
		return s.executor.Execute(ctx, &e, append(effects, effect.Update{Object: cordoned})...)
	default:
		return s.executor.Execute(ctx, &e, effects...)
	}
}

// recordReplacements writes on rebalanced claims on which other claims a plan expects their pods.
// The pods stay until those claims are ready. Losing a write is harmless: the pods are in the next
// batch again, and the wait is limited.
func (s *Service) recordReplacements(ctx context.Context, plan planning.Plan) error {
	expected := map[string][]string{}
	for _, n := range plan.Nominations {
		if n.Pod.Node != "" {
			expected[n.Pod.Node] = append(expected[n.Pod.Node], n.Claim)
		}
	}
	var failures []error
	for _, c := range s.listClaims() {
		claims, known := expected[c.Status.NodeName]
		if !known || c.DeletionTimestamp == nil {
			continue
		}
		if noted, changed := nodeclaim.WithReplacements(c, claims); changed {
			failures = append(failures, s.executor.Execute(ctx, nil, effect.Update{Object: noted}))
		}
	}
	return joinUnexpected(failures)
}

// deleteInterrupted deletes the claim and taints its node. The effects before are executed first.
func (s *Service) deleteInterrupted(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, node *corev1.Node, before []effect.Effect, why event.NoticeKind) error {
	if c.DeletionTimestamp == nil {
		s.rememberTrace(c, e)
		before = append(before, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: string(why)})
		before = append(before, s.reportTermination(c, node)...)
	}
	if err := s.executor.Execute(ctx, &e, before...); err != nil {
		return err
	}
	return s.taintNode(ctx, c, node)
}
