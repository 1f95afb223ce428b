package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption/staticdeprovisioning"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// statics removes what static pools have too many of.
func (s *Service) statics(ctx context.Context, w world) error {
	if !s.StaticCapacity {
		return nil
	}
	var failures []error
	for _, np := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		if nodepool.ForeignClass(np) || len(staticdeprovisioning.SelectSurplus(s.static(np, w.claims, w))) == 0 {
			continue
		}
		if err := s.shrink(ctx, np, w); err != nil {
			failures = append(failures, fmt.Errorf("removing what NodePool %s has too many of: %w", np.Name, err))
		}
	}
	return errors.Join(failures...)
}

// static is what there is to know of a pool with these claims.
func (s *Service) static(np *karpenter.NodePool, claims []*karpenter.NodeClaim, w world) staticdeprovisioning.View {
	v := staticdeprovisioning.View{Pool: np, Now: s.Now()}
	if !np.Static() {
		return v
	}
	for _, c := range claims {
		if c.Labels[karpenter.NodePoolLabelKey] != np.Name {
			continue
		}
		m := staticdeprovisioning.Member{Claim: c, Node: w.node(c)}
		if m.Node != nil {
			m.Pods = w.pods(m.Node.Name)
		}
		v.Members = append(v.Members, m)
	}
	return v
}

// shrink decides by the pool and the claims as they are now: the cache may not show
// yet what was removed a moment ago, and as pods move others would be chosen.
func (s *Service) shrink(ctx context.Context, np *karpenter.NodePool, w world) error {
	now, err := cluster.Get[*karpenter.NodePool](ctx, s.Client, cluster.NodePools, cluster.KeyOf(np))
	if err != nil {
		return err
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return err
	}
	var failures []error
	for _, m := range staticdeprovisioning.SelectSurplus(s.static(now, claims, w)) {
		why := fmt.Sprintf("NodePool %s asks for no more than %d nodes", np.Name, *now.Spec.Replicas)
		s.both(ctx, events.DisruptionTerminating, m.Claim, m.Node, "Disrupting Node: "+why, "Disrupting NodeClaim: "+why)
		failures = append(failures, s.do.Do(ctx, nil, effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(m.Claim), UID: m.Claim.UID, Why: why}))
	}
	return errors.Join(failures...)
}
