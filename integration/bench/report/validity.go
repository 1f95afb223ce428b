package report

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// describeValidity returns one word for the validity of a result.
func describeValidity(failure string, violations []string, late, checked bool) string {
	switch {
	case failure != "":
		return "FAILED"
	case len(violations) > 0:
		return "INVALID"
	case late:
		return "late"
	case !checked:
		return "unjudged"
	default:
		return "valid"
	}
}

func planVerdict(m contest.Measurement) string {
	return describeValidity(m.Failure, m.Violations, m.TimedOut, m.Judged)
}

func fleetVerdict(c *contest.Consolidation) string {
	return describeValidity(c.Failure, c.Violations, !c.Complete, c.Judged)
}

// Problems lists all failures and violations, one per line; empty if none exist.
func Problems(plans []contest.Row, fleets []contest.FleetRow) string {
	var out strings.Builder
	addBound := func(scenario, failure string) {
		if failure != "" {
			fmt.Fprintf(&out, "%s has no bound: %s\n", scenario, failure)
		}
	}
	addResult := func(planner, scenario, failure string, violations []string) {
		switch {
		case failure != "":
			fmt.Fprintf(&out, "%s failed on %s: %s\n", planner, scenario, failure)
		case len(violations) > 0:
			fmt.Fprintf(&out, "%s has %s on %s, first: %s\n", planner, counted(len(violations), "violation"), scenario, violations[0])
		}
	}
	for _, row := range plans {
		addBound(row.Scenario, row.BoundFailure)
		for _, m := range row.Results {
			addResult(m.Planner, row.Scenario, m.Failure, m.Violations)
		}
	}
	for _, row := range fleets {
		addBound(row.Scenario, row.BoundFailure)
		for _, c := range row.Results {
			addResult(c.Planner, row.Scenario, c.Failure, c.Violations)
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
