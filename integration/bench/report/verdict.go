package report

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// verdict returns one word for the validity of a plan.
func verdict(m contest.Measurement) string {
	switch {
	case m.Failure != "":
		return "FAILED"
	case len(m.Violations) > 0:
		return "INVALID"
	case m.TimedOut:
		return "late"
	case !m.Judged:
		return "unjudged"
	default:
		return "valid"
	}
}

// Problems lists all failures and violations, one per line; empty if there are none.
func Problems(rows []contest.Row) string {
	var out strings.Builder
	for _, row := range rows {
		if row.BoundFailure != "" {
			fmt.Fprintf(&out, "%s has no bound: %s\n", row.Scenario, row.BoundFailure)
		}
		for _, m := range row.Results {
			switch {
			case m.Failure != "":
				fmt.Fprintf(&out, "%s failed on %s: %s\n", m.Planner, row.Scenario, m.Failure)
			case len(m.Violations) > 0:
				fmt.Fprintf(&out, "%s has %s on %s, first: %s\n", m.Planner, counted(len(m.Violations), "violation"), row.Scenario, m.Violations[0])
			}
		}
	}
	return out.String()
}

// overBound returns the ratio of a plan's price to the bound, which is for placing all
// pods.
func overBound(bound float64, m contest.Measurement) string {
	if !m.Valid() || m.Scheduled != m.Pods {
		return none
	}
	return ratio(m.DollarsPerHour, bound)
}

// costs returns the ratio of two plans' prices. If the plans place different numbers of
// pods, there is no ratio.
func costs(ours, theirs contest.Measurement) string {
	if !ours.Valid() || !theirs.Valid() || ours.Scheduled != theirs.Scheduled {
		return none
	}
	return ratio(ours.DollarsPerHour, theirs.DollarsPerHour)
}

// effort returns the ratio of the baseline's figure to the challenger's, as a lower bound
// if the baseline was stopped.
func effort(ours, theirs contest.Measurement, figure func(contest.Measurement) float64) string {
	if !ours.Valid() || !theirs.Valid() {
		return none
	}
	if theirs.TimedOut {
		return "≥ " + times(figure(theirs), figure(ours))
	}
	return times(figure(theirs), figure(ours))
}

func seconds(m contest.Measurement) float64 { return m.CPU() }
func mallocs(m contest.Measurement) float64 { return float64(m.Mallocs) }
