package nodepool

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// BudgetsReadable is the condition of a NodePool with a budget that cannot be read,
// which lets none of its nodes go: the CRD's pattern lets schedules through that
// no calendar has. Ready does not depend on it, as nodes are launched all the same.
// A pool whose budgets can be read does not have it, and looks as upstream's does.
const BudgetsReadable = "BudgetsReadable"

// UnreadableBudgets says what is wrong with the pool's budgets, or "".
func UnreadableBudgets(pool *karpenter.NodePool, now time.Time) string {
	// One that cannot be read allows nothing for any reason, so that asking for one is
	// enough.
	if _, err := budget.Allowed(pool, 1, karpenter.DisruptionReasonUnderutilized, now); err != nil {
		return oneLine(err)
	}
	return ""
}

// withBudgets says that the pool's budgets cannot be read, as long as that is so.
func withBudgets(conditions karpenter.Conditions, pool *karpenter.NodePool, now time.Time) karpenter.Conditions {
	if wrong := UnreadableBudgets(pool, now); wrong != "" {
		return conditions.With(no(pool, BudgetsReadable, "BudgetsUnreadable", wrong), now)
	}
	if _, had := conditions.Get(BudgetsReadable); had {
		return conditions.Without(BudgetsReadable)
	}
	return conditions
}
