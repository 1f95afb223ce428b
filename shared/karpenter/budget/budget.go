// Package budget says how many nodes of a pool may be going away at the same
// time.
//
// Of the budgets that are active and concern the reason the strictest counts;
// without one there is no bound. Percentages round up, as they do in a
// PodDisruptionBudget's maxUnavailable, so that a small pool can move at all.
// A budget that cannot be understood allows nothing, whatever its reasons: the
// person who wrote it meant to forbid something.
package budget

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// Unbounded is what Allowed gives where no budget applies.
const Unbounded = math.MaxInt

// AllowedDisruptions is how many of a pool's nodes may be going for the reason at now; on
// error it is 0. Schedules are read in the time zone that the pool's annotation
// names, and in UTC without one (policy.BudgetTimeZone).
func AllowedDisruptions(pool *karpenter.NodePool, nodes int, reason karpenter.DisruptionReason, now time.Time) (int, error) {
	asked, err := policy.ReadBudgets(pool.Annotations)
	if err != nil {
		return 0, err
	}
	allowed := Unbounded
	for i, b := range pool.Spec.Disruption.Budgets {
		n, err := allowedByBudget(b, nodes, asked.Zone, now)
		if err != nil {
			return 0, fmt.Errorf("spec.disruption.budgets[%d]: %w", i, err)
		}
		if appliesTo(b, reason) {
			allowed = min(allowed, n)
		}
	}
	return allowed, nil
}

// appliesTo reports whether the budget is for the reason: without any, it is for all.
func appliesTo(b karpenter.Budget, reason karpenter.DisruptionReason) bool {
	return len(b.Reasons) == 0 || slices.Contains(b.Reasons, reason)
}

// allowedByBudget is what a single budget allows.
func allowedByBudget(b karpenter.Budget, nodes int, zone *time.Location, now time.Time) (int, error) {
	when, err := parseSchedule(b, zone)
	if err != nil {
		return 0, err
	}
	most, err := parseNodes(b.Nodes, nodes)
	if err != nil {
		return 0, err
	}
	if !when.isActive(now) {
		return Unbounded, nil
	}
	return most, nil
}

// parseNodes reads a number, or a percentage of the nodes rounded up.
func parseNodes(text string, nodes int) (int, error) {
	n, percent, err := parseAmount(text)
	if err != nil || !percent {
		return n, err
	}
	return roundedUpPercent(nodes, n), nil
}

// parseAmount reads a number or a percentage.
func parseAmount(text string) (number int, percent bool, err error) {
	digits, percent := strings.CutSuffix(text, "%")
	number, err = strconv.Atoi(digits)
	if err != nil || number < 0 || percent && number > 100 {
		return 0, percent, fmt.Errorf("nodes %q is neither a count nor a percentage such as 10%%", text)
	}
	return number, percent, nil
}

// roundedUpPercent is a percentage of the nodes, rounded up.
func roundedUpPercent(nodes, percent int) int { return (nodes*percent + 99) / 100 }
