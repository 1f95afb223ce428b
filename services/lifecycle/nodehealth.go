package lifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption/nodehealth"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/metrics"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// NodeHealth is when sick nodes are replaced; the zero value is never.
type NodeHealth = nodehealth.Policy

// repairs replaces nodes that have been sick for too long.
func (s *Service) repairs(ctx context.Context, w world) error {
	if len(s.Repair.Rules) == 0 {
		return nil
	}
	view := nodehealth.View{
		Policy: s.Repair, Nodes: cluster.Cached[*corev1.Node](s.Cache, cluster.Nodes), Now: s.Now(),
		Paused: func(node *corev1.Node) bool { return s.asked.within(paused(node), nodehealth.RetryPause) },
	}
	for _, c := range w.claims {
		if node := nodeOf(c, w.nodes[c.Status.ProviderID]); node != nil && c.Status.ProviderID != "" {
			view.Monitored = append(view.Monitored, nodehealth.MonitoredNode{Claim: c, Node: node})
		}
	}
	var failures []error
	for _, sick := range nodehealth.PlanRepairs(view) {
		if err := s.do.Do(ctx, nil, s.treat(sick, w)...); err != nil {
			failures = append(failures, fmt.Errorf("repairing node %s: %w", sick.Node.Name, err))
		}
	}
	return errors.Join(failures...)
}

// paused is under which the memory keeps that the breaker held the node back.
func paused(node *corev1.Node) string { return "repair/" + string(node.UID) }

// treat replaces a node by force, or tells everybody concerned why not. The
// deadline is written first: whoever dies between leaves a claim that stays.
func (s *Service) treat(sick nodehealth.PlannedRepair, w world) []effect.Effect {
	if sick.Blocked == "" {
		return s.replace(sick)
	}
	s.asked.note(paused(sick.Node))
	effects := []effect.Effect{
		events.NodeRepairBlocked.About(cluster.Nodes, sick.Node, s.Now(), "%s", sick.Blocked),
		events.NodeRepairBlocked.About(cluster.NodeClaims, sick.Claim, s.Now(), "%s", sick.Blocked),
	}
	if np := w.pools[sick.Claim.Labels[karpenter.NodePoolLabelKey]]; np != nil {
		effects = append(effects, events.NodeRepairBlocked.About(cluster.NodePools, np, s.Now(), "%s", sick.Blocked))
	}
	return effects
}

func (s *Service) replace(sick nodehealth.PlannedRepair) []effect.Effect {
	var effects []effect.Effect
	if marked, changed := nodeclaim.Sooner(sick.Claim, s.Now()); changed {
		effects = append(effects, effect.Update{Object: marked})
	}
	if sick.Claim.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(sick.Claim), UID: sick.Claim.UID, Why: metrics.Unhealthy + sick.Why})
	}
	return effects
}
