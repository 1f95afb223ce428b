package report

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// verdict says in a word whether the plan counts.
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

// Problems says all that went wrong, a line each; it is empty when nothing did.
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

// overBound is a plan's price over the bound, which is that of placing all pods.
func overBound(bound float64, m contest.Measurement) string {
	if !m.Valid() || m.Scheduled != m.Pods {
		return none
	}
	return ratio(m.DollarsPerHour, bound)
}

// costs is the ratio of two plans' prices. A plan that places fewer pods is no
// cheaper plan, so then there is none.
func costs(ours, theirs contest.Measurement) string {
	if !ours.Valid() || !theirs.Valid() || ours.Scheduled != theirs.Scheduled {
		return none
	}
	return ratio(ours.DollarsPerHour, theirs.DollarsPerHour)
}

// effort is how many times ours theirs is; at least as many, when they were
// stopped.
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
