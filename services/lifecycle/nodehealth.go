package lifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption/nodehealth"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/metrics"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// repairNodes is the legacy node repair: it replaces nodes that have been unhealthy for their
// toleration duration.
func (s *Service) repairNodes(ctx context.Context, w clusterState) error {
	if len(s.LegacyRepair.Policies) == 0 {
		return nil
	}
	view := nodehealth.View{
		Policy: s.LegacyRepair, Nodes: cluster.ListCached[*corev1.Node](s.Cache, cluster.Nodes), Now: s.Now(),
		Paused: func(node *corev1.Node) bool { return s.throttle.usedWithin(repairKey(node), nodehealth.RetryPause) },
	}
	for _, c := range w.claims {
		if node := selectNode(c, w.nodesByProviderID[c.Status.ProviderID]); node != nil && c.Status.ProviderID != "" {
			view.Monitored = append(view.Monitored, nodehealth.MonitoredNode{Claim: c, Node: node})
		}
	}
	var failures []error
	for _, sick := range nodehealth.PlanRepairs(view) {
		if err := s.executor.Execute(ctx, nil, s.repairEffects(sick, w)...); err != nil {
			failures = append(failures, fmt.Errorf("repairing node %s: %w", sick.Node.Name, err))
		}
	}
	return errors.Join(failures...)
}

// repairKey returns the throttle key for a node whose repair the breaker blocked.
func repairKey(node *corev1.Node) string { return "repair/" + string(node.UID) }

// repairEffects replaces a node, or reports why it is not replaced.
func (s *Service) repairEffects(sick nodehealth.PlannedRepair, w clusterState) []effect.Effect {
	if sick.Blocked == "" {
		return s.replaceUnhealthy(sick)
	}
	s.throttle.record(repairKey(sick.Node))
	var pool cluster.Object
	if np := w.pools[sick.Claim.Labels[karpenter.NodePoolLabelKey]]; np != nil {
		pool = np
	}
	return s.reportRepairBlocked(sick.Node, sick.Claim, pool, sick.Blocked)
}

func (s *Service) replaceUnhealthy(sick nodehealth.PlannedRepair) []effect.Effect {
	var effects []effect.Effect
	if marked, changed := nodeclaim.WithEarlierDeadline(sick.Claim, s.Now()); changed {
		effects = append(effects, effect.Update{Object: marked})
	}
	if sick.Claim.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(sick.Claim), UID: sick.Claim.UID, Why: metrics.Unhealthy + sick.Why})
	}
	return effects
}
