package lifecycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Rebalance is what becomes of a node of which EC2 recommends to rebalance it: its
// spot instance is likelier than others to be taken back (B179, B247). Whatever
// the policy, the recommendation is told.
type Rebalance string

// The policies. The empty one is RebalanceIgnore, which is upstream's.
const (
	// RebalanceIgnore leaves the node alone.
	RebalanceIgnore Rebalance = "ignore"
	// RebalanceCordon lets it take no further pods, for as long as it lives.
	RebalanceCordon Rebalance = "cordon"
	// RebalanceReplace drains it before the warning comes: a place for its pods is
	// planned at once, and they leave it as PodDisruptionBudgets allow, without a
	// deadline.
	RebalanceReplace Rebalance = "replace"
)

// recommended acts on a recommendation that has been told.
func (s *Service) recommended(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, node *corev1.Node, told []effect.Effect) error {
	switch {
	case s.Rebalance == RebalanceReplace:
		return s.end(ctx, e, c, node, told, event.RebalanceRecommendation)
	case s.Rebalance == RebalanceCordon && node != nil && !node.Spec.Unschedulable:
		cordoned := node.DeepCopy()
		cordoned.Spec.Unschedulable = true
		return s.do.Do(ctx, &e, append(told, effect.Update{Object: cordoned})...)
	default:
		return s.do.Do(ctx, &e, told...)
	}
}

// end deletes the claim, and keeps further pods away from its node. The effects
// before it are those that must have happened then.
func (s *Service) end(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, node *corev1.Node, before []effect.Effect, why event.NoticeKind) error {
	if c.DeletionTimestamp == nil {
		before = append(before, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: string(why)})
		before = append(before, s.terminating(c, node)...)
	}
	if err := s.do.Do(ctx, &e, before...); err != nil {
		return err
	}
	return s.taint(ctx, c, node)
}
