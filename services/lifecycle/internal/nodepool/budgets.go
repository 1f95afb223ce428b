package nodepool

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// BudgetsReadable is the condition of a NodePool with a budget that cannot be parsed, which allows
// no disruption: the CRD's pattern accepts schedules that do not exist. Ready does not depend on
// it, because nodes are still launched. A pool with valid budgets does not have it, as in
// Karpenter.
const BudgetsReadable = "BudgetsReadable"

// UnreadableBudgets returns the error in the pool's budgets, or "".
func UnreadableBudgets(pool *karpenter.NodePool, now time.Time) string {
	// An invalid budget allows nothing for any reason, so one reason is enough.
	if _, err := budget.AllowedDisruptions(pool, 1, karpenter.DisruptionReasonUnderutilized, now); err != nil {
		return oneLine(err)
	}
	return ""
}

// withBudgets sets BudgetsReadable to False while the pool's budgets cannot be read.
func withBudgets(conditions karpenter.Conditions, pool *karpenter.NodePool, now time.Time) karpenter.Conditions {
	if wrong := UnreadableBudgets(pool, now); wrong != "" {
		return conditions.With(falseCondition(pool, BudgetsReadable, "BudgetsUnreadable", wrong), now)
	}
	if _, had := conditions.Get(BudgetsReadable); had {
		return conditions.Without(BudgetsReadable)
	}
	return conditions
}
