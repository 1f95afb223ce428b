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

// Rebalance is what becomes of a node of which EC2 recommends to rebalance it: its
// spot instance is likelier than others to be taken back. Whatever
// the policy, the recommendation is told.
type Rebalance string

// The policies. The empty one is RebalanceIgnore, which is upstream's.
const (
	// RebalanceIgnore leaves the node alone.
	RebalanceIgnore Rebalance = "ignore"
	// RebalanceCordon lets it take no further pods, for as long as it lives.
	RebalanceCordon Rebalance = "cordon"
	// RebalanceReplace drains it before the warning comes: a place for its pods is
	// planned at once, and when that is initialized, or takes too long, they leave as
	// PodDisruptionBudgets allow, without a deadline.
	RebalanceReplace Rebalance = "replace"
)

// recommended acts on a recommendation that has been told.
func (s *Service) recommended(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, node *corev1.Node, told []effect.Effect) error {
	switch {
	case s.Rebalance == RebalanceReplace:
		if marked, changed := nodeclaim.Rebalanced(c, s.Now()); changed {
			s.ending(marked, e)
			told = append(told, effect.Update{Object: marked})
		}
		return s.end(ctx, e, c, node, told, event.RebalanceRecommendation)
	case s.Rebalance == RebalanceCordon && node != nil && !node.Spec.Unschedulable:
		cordoned := node.DeepCopy()
		cordoned.Spec.Unschedulable = true
		return s.do.Do(ctx, &e, append(told, effect.Update{Object: cordoned})...)
	default:
		return s.do.Do(ctx, &e, told...)
	}
}

// replacements notes on claims that go for a rebalance where a plan expects their
// pods, which stay until that place is ready. Losing a note is harmless: the pods
// are in the next batch again, and the wait has an end.
func (s *Service) replacements(ctx context.Context, plan planning.Plan) error {
	expected := map[string][]string{}
	for _, n := range plan.Nominations {
		if n.Pod.Node != "" {
			expected[n.Pod.Node] = append(expected[n.Pod.Node], n.Claim)
		}
	}
	var failures []error
	for _, c := range cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims) {
		claims, known := expected[c.Status.NodeName]
		if !known || c.DeletionTimestamp == nil {
			continue
		}
		if noted, changed := nodeclaim.Replaced(c, claims); changed {
			failures = append(failures, s.do.Do(ctx, nil, effect.Update{Object: noted}))
		}
	}
	return worth(failures)
}

// end deletes the claim, and keeps further pods away from its node. The effects
// before it are those that must have happened then.
func (s *Service) end(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, node *corev1.Node, before []effect.Effect, why event.NoticeKind) error {
	if c.DeletionTimestamp == nil {
		s.remember(c, e)
		before = append(before, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: string(why)})
		before = append(before, s.terminating(c, node)...)
	}
	if err := s.do.Do(ctx, &e, before...); err != nil {
		return err
	}
	return s.taint(ctx, c, node)
}
