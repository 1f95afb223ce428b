package lifecycle

import (
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/pool"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/remark"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// unreadable tells people of a pool whose policy cannot be read.
func (s *Service) unreadable(np *karpenter.NodePool) []effect.Effect {
	wrong := pool.Unreadable(np)
	if wrong == "" {
		return nil
	}
	return []effect.Effect{remark.PolicyUnreadable.On(cluster.NodePools, np, s.Now(), "%s", wrong)}
}
