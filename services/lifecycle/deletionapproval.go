package lifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool/deletionapproval"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// DeletionApproval defines which NodePools are deleted only after approval. The zero value requires
// no approval.
type DeletionApproval = deletionapproval.Threshold

// conditionDeletionApproved is the condition of a NodePool whose deletion waits for approval.
// Karpenter has no such condition.
const conditionDeletionApproved = "DeletionApproved"

// reconcileDeletionApprovals adds and removes the finalizer of NodePools and executes the approved
// deletions.
func (s *Service) reconcileDeletionApprovals(ctx context.Context, w clusterState) error {
	claims := map[string][]*karpenter.NodeClaim{}
	for _, c := range w.claims {
		name := c.Labels[karpenter.NodePoolLabelKey]
		claims[name] = append(claims[name], c)
	}
	size := len(cluster.ListCached[*corev1.Node](s.Cache, cluster.Nodes))
	var failures []error
	for _, np := range s.listPools() {
		d := deletionapproval.Decide(deletionapproval.View{Pool: np, Claims: claims[np.Name], Cluster: size, Threshold: s.DeletionApproval})
		if err := s.executor.Execute(ctx, nil, append(d.Effects, s.deletionStatus(np, d)...)...); err != nil {
			failures = append(failures, fmt.Errorf("handling the deletion of NodePool %s: %w", np.Name, err))
		}
	}
	return errors.Join(failures...)
}

// deletionStatus returns the effects that report the state of a deletion, as a condition and an
// Event.
func (s *Service) deletionStatus(np *karpenter.NodePool, d deletionapproval.Decision) []effect.Effect {
	if d.Reason == "" {
		return nil
	}
	condition := metav1.Condition{
		Type: conditionDeletionApproved, Status: metav1.ConditionTrue, Reason: d.Reason, Message: d.Message, ObservedGeneration: np.Generation,
	}
	var effects []effect.Effect
	if d.AwaitsApproval {
		condition.Status = metav1.ConditionFalse
		effects = append(effects, events.DeletionAwaitsApproval.About(cluster.NodePools, np, s.Now(), "%s", d.Message))
	}
	next := np.DeepCopy()
	next.Status.Conditions = next.Status.Conditions.With(condition, s.Now())
	if equalJSON(np.Status, next.Status) {
		return effects
	}
	return append(effects, effect.UpdateStatus{Object: next})
}
