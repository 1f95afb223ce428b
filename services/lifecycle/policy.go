package lifecycle

import (
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/pool"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/remark"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// troubles tells people of a pool whose policy or whose budgets cannot be read, and of
// one whose drift does not go on by itself.
func troubles(v pool.View) (out []effect.Effect) {
	np, now := v.Pool, v.Now
	if wrong := pool.Unreadable(np); wrong != "" {
		out = append(out, remark.PolicyUnreadable.On(cluster.NodePools, np, now, "%s", wrong))
	}
	if wrong := pool.UnreadableBudgets(np, now); wrong != "" {
		out = append(out, remark.BudgetsUnreadable.On(cluster.NodePools, np, now, "%s", wrong))
	}
	if why := pool.DriftHalted(v); why != "" {
		out = append(out, remark.DriftHalted.On(cluster.NodePools, np, now, "%s", why))
	}
	return out
}
