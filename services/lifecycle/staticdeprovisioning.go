package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption/staticdeprovisioning"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// reconcileStaticNodePools removes surplus nodes of static NodePools.
func (s *Service) reconcileStaticNodePools(ctx context.Context, w clusterState) error {
	if !s.StaticCapacity {
		return nil
	}
	var failures []error
	for _, np := range s.listPools() {
		if len(staticdeprovisioning.SelectSurplus(s.staticView(np, w.claims, w))) == 0 {
			continue
		}
		if err := s.removeSurplus(ctx, np, w); err != nil {
			failures = append(failures, fmt.Errorf("removing surplus nodes of NodePool %s: %w", np.Name, err))
		}
	}
	return errors.Join(failures...)
}

// staticView collects the input of staticdeprovisioning for a pool and these claims.
func (s *Service) staticView(np *karpenter.NodePool, claims []*karpenter.NodeClaim, w clusterState) staticdeprovisioning.View {
	v := staticdeprovisioning.View{Pool: np, ManagesDeletionCosts: s.PodDeletionCosts, Now: s.Now()}
	if !np.IsStatic() {
		return v
	}
	for _, c := range claims {
		if c.Labels[karpenter.NodePoolLabelKey] != np.Name {
			continue
		}
		m := staticdeprovisioning.Member{Claim: c, Node: w.findNode(c)}
		if m.Node != nil {
			m.Pods = w.pods(m.Node.Name)
		}
		v.Members = append(v.Members, m)
	}
	return v
}

// removeSurplus selects the surplus from the live pool and claims. The cache may not contain recent
// deletions, and after pods have moved it would select other claims.
func (s *Service) removeSurplus(ctx context.Context, np *karpenter.NodePool, w clusterState) error {
	now, err := cluster.Get[*karpenter.NodePool](ctx, s.Client, cluster.NodePools, cluster.KeyOf(np))
	if err != nil {
		return err
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return err
	}
	var failures []error
	for _, m := range staticdeprovisioning.SelectSurplus(s.staticView(now, onlyManaged(claims), w)) {
		why := fmt.Sprintf("NodePool %s has replicas=%d", np.Name, *now.Spec.Replicas)
		s.publishOnBoth(ctx, events.DisruptionTerminating, m.Claim, m.Node, "Disrupting Node: "+why, "Disrupting NodeClaim: "+why)
		failures = append(failures, s.executor.Execute(ctx, nil, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(m.Claim), UID: m.Claim.UID, Why: why}))
	}
	return errors.Join(failures...)
}
