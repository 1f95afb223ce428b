// Package budget says how many nodes of a pool may be going away at the same
// time (B012, B160).
//
// Of the budgets that are active and concern the reason the strictest counts;
// without one there is no bound. Percentages round up, as they do in a
// PodDisruptionBudget's maxUnavailable, so that a small pool can move at all.
// A budget that cannot be understood allows nothing, whatever its reasons: the
// person who wrote it meant to forbid something.
package budget

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Unbounded is what Allowed gives where no budget applies.
const Unbounded = math.MaxInt

// Allowed is how many of a pool's nodes may be going for the reason at now; on
// error it is 0.
func Allowed(budgets []karpenter.Budget, nodes int, reason karpenter.DisruptionReason, now time.Time) (int, error) {
	allowed := Unbounded
	for i, b := range budgets {
		n, err := one(b, nodes, now)
		if err != nil {
			return 0, fmt.Errorf("spec.disruption.budgets[%d]: %w", i, err)
		}
		if len(b.Reasons) == 0 || slices.Contains(b.Reasons, reason) {
			allowed = min(allowed, n)
		}
	}
	return allowed, nil
}

// one is what a single budget allows.
func one(b karpenter.Budget, nodes int, now time.Time) (int, error) {
	open, err := active(b, now)
	if err != nil {
		return 0, err
	}
	most, err := count(b.Nodes, nodes)
	if err != nil {
		return 0, err
	}
	if !open {
		return Unbounded, nil
	}
	return most, nil
}

// active reports whether the budget applies at now: its schedule has hit within
// the last duration. A schedule that never hits counts as one that does, for
// the bound is then what somebody wanted and mistyped.
func active(b karpenter.Budget, now time.Time) (bool, error) {
	if b.Schedule == nil && b.Duration == nil {
		return true, nil
	}
	if b.Schedule == nil || b.Duration == nil {
		return false, errors.New("schedule and duration go together: write both, or neither")
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + *b.Schedule)
	if err != nil {
		return false, fmt.Errorf("reading schedule %q (write five fields such as %q, or @daily): %w", *b.Schedule, "0 9 * * 1-5", err)
	}
	return !schedule.Next(now.Add(-b.Duration.Duration)).After(now), nil
}

// count reads a number, or a percentage of the nodes rounded up.
func count(text string, nodes int) (int, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 {
		return 0, fmt.Errorf("nodes %q is neither a count nor a percentage such as 10%%", text)
	}
	if !percent {
		return n, nil
	}
	return (nodes*n + 99) / 100, nil
}
