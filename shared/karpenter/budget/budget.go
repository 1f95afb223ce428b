// Package budget computes how many nodes of a pool may be disrupted at the same time.
//
// Of the active budgets for a reason the strictest counts; without one there is no limit. Percentages round up, as in
// a PodDisruptionBudget's maxUnavailable, so that small pools can be disrupted at all. An invalid budget allows no
// disruptions for any reason, because it was meant to prevent some.
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

// Unbounded is the result of AllowedDisruptions if no budget applies.
const Unbounded = math.MaxInt

// AllowedDisruptions returns how many of a pool's nodes may be under disruption for the reason at now; on error it is
// 0. Schedules are in the time zone of the pool's annotation (policy.BudgetTimeZone), by default UTC.
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

// appliesTo reports whether the budget is for the reason. A budget without reasons is for all.
func appliesTo(b karpenter.Budget, reason karpenter.DisruptionReason) bool {
	return len(b.Reasons) == 0 || slices.Contains(b.Reasons, reason)
}

// allowedByBudget returns what a single budget allows.
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

// parseNodes parses a number, or a percentage of the nodes rounded up.
func parseNodes(text string, nodes int) (int, error) {
	n, percent, err := parseAmount(text)
	if err != nil || !percent {
		return n, err
	}
	return roundedUpPercent(nodes, n), nil
}

// parseAmount parses a number or a percentage.
func parseAmount(text string) (number int, percent bool, err error) {
	digits, percent := strings.CutSuffix(text, "%")
	number, err = strconv.Atoi(digits)
	if err != nil || number < 0 || percent && number > 100 {
		return 0, percent, fmt.Errorf("nodes %q is neither a count nor a percentage such as 10%%", text)
	}
	return number, percent, nil
}

// roundedUpPercent returns a percentage of the nodes, rounded up.
func roundedUpPercent(nodes, percent int) int { return (nodes*percent + 99) / 100 }
