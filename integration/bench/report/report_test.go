package report

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

// contests returns invented rows: a cheaper plan, an invalid one, a timeout, a failure,
// and a scenario without a bound.
func contests() []contest.Row {
	plan := func(planner string, pods, nodes, options int, dollars, seconds float64, mallocs uint64) contest.Measurement {
		return contest.Measurement{
			Planner: planner, Version: planner + " v1", Pods: pods, Scheduled: pods, Nodes: nodes, OptionsMedian: options, DollarsPerHour: dollars,
			SolveUserS: seconds, Mallocs: mallocs, AllocMB: float64(mallocs) / 1e4, PeakRSSMB: 80, Judged: true, Runs: 3,
		}
	}
	wrong, late := plan("joist", 1000, 20, 60, 39, 0.0312, 41_000), plan("karpenter", 50_000, 32, 9, 200, 61.5, 43_000_000)
	wrong.Violations = []string{"spread: dep-7: 3 pods in us-east-1b, 1 in us-east-1d", "once: dep-8"}
	late.Scheduled, late.TimedOut = 5150, true
	failed := contest.Measurement{Planner: "karpenter", Pods: 100, Failure: "running karpenterbaseline: exit status 2"}
	rows := []contest.Row{
		{Scenario: "b-hetero-1000", Kind: "b", Pods: 1000, Bound: 34.98, Results: []contest.Measurement{
			plan("joist", 1000, 25, 17, 35.51, 0.0041, 6100), plan("karpenter", 1000, 5, 5, 46.48, 0.64, 480_000)}},
		{Scenario: "b-hetero-50000", Kind: "b", Pods: 50_000, Bound: 1900, Results: []contest.Measurement{
			plan("joist", 50_000, 900, 15, 1950, 0.9, 300_000), late}},
		{Scenario: "c-mixed-1000", Kind: "c", Pods: 1000, Bound: 25.04, Results: []contest.Measurement{
			wrong, plan("karpenter", 1000, 200, 60, 40.1, 4.9, 4_600_000)}},
		{Scenario: "d-multi-100", Kind: "d", Pods: 100, BoundFailure: "it is unbounded", Results: []contest.Measurement{
			plan("joist", 100, 7, 30, 8.09, 0.0008, 900), failed}},
	}
	return rows
}

// aloneRecord has invented results of one planner, one of which is invalid.
func aloneRecord() Record {
	big := func(kind string, violations ...string) contest.Row {
		return contest.Row{Scenario: kind + "-100000", Kind: kind, Pods: 100_000, BoundFailure: "it has more than 20000 pods", Results: []contest.Measurement{{
			Planner: "joist", Version: "joist v1", Pods: 100_000, Scheduled: 100_000, Nodes: 4703, DollarsPerHour: 4062.61, ClaimedBound: 3909.96,
			SolveUserS: 1.25, Mallocs: 107_000, PeakRSSMB: 355, Judged: true, Runs: 3, Violations: violations,
		}}}
	}
	return Record{
		Date: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), Commit: "0123456789ab", Machine: contest.Machine{CPU: "A processor", Cores: 2, Load: 0.5}, Runs: 1,
		Rows: []contest.Row{big("b"), big("r", "once: dep-8")},
	}
}

func TestPlanTables(t *testing.T) {
	rows := contests()
	record := Record{
		Date: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Commit: "0123456789ab+", Go: "go1.26.5",
		Machine: contest.Machine{CPU: "A processor", Cores: 2, OS: "linux/amd64", Load: 0.5}, Seed: 42, Runs: 3, Limit: "1m0s", Rows: rows,
	}
	for name, text := range map[string]string{
		"each.txt": Each(rows), "cost.txt": PairsOf(rows).Cost(), "effort.txt": PairsOf(rows).Effort(), "problems.txt": Problems(rows, nil),
		"alone.md":   aloneRecord().Alone("figures/large/bench.json"),
		"section.md": record.Markdown("figures/bench.svg", "figures/bench.json"), "brief.md": record.Brief("benchmark.md"),
	} {
		golden.Compare(t, filepath.Join("testdata", name), text+"\n")
	}
}

// fleets returns invented rows: a consolidation with one that was stopped, one with an
// invalid one, and one that failed.
func fleets() []contest.FleetRow {
	one := func(planner string, after float64, seconds float64, steps ...contest.Step) contest.Consolidation {
		c := contest.Consolidation{
			Planner: planner, Version: planner + " v1", Runs: 3, Nodes: 100, Pods: 927, Before: 47.88, After: after, NodesAfter: 9, Complete: true, Steps: steps,
			UserS: seconds, PeakRSSMB: 90, Judged: true,
		}
		for _, s := range steps {
			c.PodsMoved += s.PodsMoved
		}
		return c
	}
	ours := one("joist", 15.1, 0.21, contest.Step{Method: "multi", Gone: 60, Came: 3, PodsMoved: 500, After: 25}, contest.Step{Method: "multi", Gone: 38, Came: 4, PodsMoved: 430, After: 15.1})
	theirs := one("karpenter", 16.59, 4.2, contest.Step{Method: "multi", Gone: 68, Came: 1, PodsMoved: 601, After: 18.71})
	late, wrong := theirs, ours
	late.Complete, wrong.Violations = false, []string{"round 1: resources: node-7"}
	return []contest.FleetRow{
		{Scenario: "e-consolidate-100", Kind: "e", Nodes: 100, Bound: 14.02, Results: []contest.Consolidation{ours, theirs}},
		{Scenario: "f-consolidate-100", Kind: "f", Nodes: 100, Bound: 14.02, Results: []contest.Consolidation{ours, late}},
		{Scenario: "e-consolidate-300", Kind: "e", Nodes: 300, BoundFailure: "it is unbounded", Results: []contest.Consolidation{wrong, {Planner: "karpenter", Failure: "exit status 2"}}},
	}
}

func TestFleetTables(t *testing.T) {
	record := Record{Rows: contests(), Fleets: fleets(), Limit: "1m0s", FleetLimit: "5m0s", Runs: 1}
	golden.Compare(t, filepath.Join("testdata", "fleets.txt"), Fleets(fleets())+"\n"+Problems(nil, fleets())+"\n")
	golden.Compare(t, filepath.Join("testdata", "fleets.md"), record.Markdown("figures/bench.svg", "figures/bench.json")+"\n")
}

func TestRecordsAreReadBack(t *testing.T) {
	before := Record{Date: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Commit: "0123", Rows: contests()}
	text, err := before.Encode()
	if err != nil {
		t.Fatal(err)
	}
	after, err := Decode(text)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestMissingRunsAreListed(t *testing.T) {
	got := Record{Rows: contests()}.missing([]string{"b", "c", "d"})
	want := []string{"100 pods of mixed Deployments, Karpenter's benchmark", "1,000 pods of five NodePools", "5,000 pods", "10,000 pods", "50,000 pods of Karpenter's benchmark, five NodePools"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}
