package lifecycle

import (
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/pool"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/remark"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// unreadable tells people of a pool whose policy or whose budgets cannot be read.
func (s *Service) unreadable(np *karpenter.NodePool) (out []effect.Effect) {
	now := s.Now()
	if wrong := pool.Unreadable(np); wrong != "" {
		out = append(out, remark.PolicyUnreadable.On(cluster.NodePools, np, now, "%s", wrong))
	}
	if wrong := pool.UnreadableBudgets(np, now); wrong != "" {
		out = append(out, remark.BudgetsUnreadable.On(cluster.NodePools, np, now, "%s", wrong))
	}
	return out
}
