package lifecycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/remark"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/repair"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/tally"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Repair is when sick nodes are replaced (B143); the zero value is never.
type Repair = repair.Policy

// repairs replaces nodes that have been sick for too long (B143).
func (s *Service) repairs(ctx context.Context, w world) error {
	if len(s.Repair.Rules) == 0 {
		return nil
	}
	view := repair.View{
		Policy: s.Repair, Nodes: cluster.Cached[*corev1.Node](s.Cache, cluster.Nodes), Now: s.Now(),
		Paused: func(node *corev1.Node) bool { return s.asked.within(paused(node), repair.Pause) },
	}
	for _, c := range w.claims {
		if node := nodeOf(c, w.nodes[c.Status.ProviderID]); node != nil && c.Status.ProviderID != "" {
			view.Patients = append(view.Patients, repair.Patient{Claim: c, Node: node})
		}
	}
	var failures []error
	for _, sick := range repair.Next(view) {
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
func (s *Service) treat(sick repair.Case, w world) []effect.Effect {
	if sick.Blocked == "" {
		return s.replace(sick)
	}
	s.asked.note(paused(sick.Node))
	effects := []effect.Effect{
		remark.NodeRepairBlocked.On(cluster.Nodes, sick.Node, s.Now(), "%s", sick.Blocked),
		remark.NodeRepairBlocked.On(cluster.NodeClaims, sick.Claim, s.Now(), "%s", sick.Blocked),
	}
	if np := w.pools[sick.Claim.Labels[karpenter.NodePoolLabelKey]]; np != nil {
		effects = append(effects, remark.NodeRepairBlocked.On(cluster.NodePools, np, s.Now(), "%s", sick.Blocked))
	}
	return effects
}

func (s *Service) replace(sick repair.Case) []effect.Effect {
	var effects []effect.Effect
	if marked, changed := claim.Sooner(sick.Claim, s.Now()); changed {
		effects = append(effects, effect.Update{Object: marked})
	}
	if sick.Claim.DeletionTimestamp == nil {
		effects = append(effects, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(sick.Claim), UID: sick.Claim.UID, Why: tally.Unhealthy + sick.Why})
	}
	return effects
}
