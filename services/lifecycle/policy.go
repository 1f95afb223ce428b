package lifecycle

import (
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// nodePoolProblems returns Events for a pool whose policy or budgets cannot be parsed, or whose
// drift is halted.
func nodePoolProblems(v nodepool.View) (out []effect.Effect) {
	np, now := v.Pool, v.Now
	if wrong := nodepool.UnreadablePolicy(np); wrong != "" {
		out = append(out, events.PolicyUnreadable.About(cluster.NodePools, np, now, "%s", wrong))
	}
	if wrong := nodepool.UnreadableBudgets(np, now); wrong != "" {
		out = append(out, events.BudgetsUnreadable.About(cluster.NodePools, np, now, "%s", wrong))
	}
	if why := nodepool.DriftHalted(v); why != "" {
		out = append(out, events.DriftHalted.About(cluster.NodePools, np, now, "%s", why))
	}
	return out
}
