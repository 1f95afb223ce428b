package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/report"
)

func TestWritingScenariosMeasuresNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := run(t.Context(), parse([]string{"-write", dir, "-set", "a=5;e=2", "-joist", "no-such-planner"})); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"a-inflate-5.json", "catalog.json", "e-consolidate-2.json"}, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestNoScenarioIsAnError(t *testing.T) {
	err := run(t.Context(), parse([]string{"-set", "e=2", "-match", "none", "-only", "joist", "-joist", "no-such-planner"}))
	if err == nil || !strings.Contains(err.Error(), "no scenario to measure") {
		t.Errorf("got %v, want an error about missing scenarios", err)
	}
}

func TestOnlyRejectsUnknownPlanner(t *testing.T) {
	for only, want := range map[string][]string{"": {"joist", "karpenter"}, "joist": {"joist"}, "karpenter": {"karpenter"}, "ca": nil} {
		got, err := planners(t.Context(), options{only: only, joist: "x", karpenter: "y"}, t.TempDir())
		var names []string
		for _, p := range got {
			names = append(names, p.Name)
		}
		if !slices.Equal(names, want) || (err != nil) != (want == nil) {
			t.Errorf("-only %q: got %v, %v, want %v", only, names, err, want)
		}
	}
}

func TestBeforeIsNotForOnePlanner(t *testing.T) {
	_, err := planners(t.Context(), options{only: "joist", before: "HEAD", joist: "x"}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "omit one of them") {
		t.Errorf("got %v, want an error that names both flags", err)
	}
}

func TestKeptRecordsCanBeRead(t *testing.T) {
	dir := t.TempDir()
	before := record(options{seed: 7, runs: 3})
	before.Rows = []contest.Row{{Scenario: "a-1", Kind: "a", Pods: 1, Bound: 1, Results: []contest.Measurement{
		{Planner: "joist", Pods: 1, Scheduled: 1, DollarsPerHour: 2, SolveUserS: 0.1},
		{Planner: "karpenter", Pods: 1, Scheduled: 1, DollarsPerHour: 3, SolveUserS: 0.2},
	}}}
	if err := keep(dir, before); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	after, err := report.Decode(text)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if before.Machine.Cores < 1 || before.Machine.CPU == "" || before.Commit == "" || before.Go == "" {
		t.Errorf("the record has no data about the machine: %+v", before)
	}
	if _, err := os.Stat(filepath.Join(dir, drawingFile)); err != nil {
		t.Error(err)
	}
}
