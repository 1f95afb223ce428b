package scale_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// maxPlanMB is the limit of a process that plans 100,000 pods, in MB.
const maxPlanMB = 1024

// TestPlansOfManyPods measures the whole process that plans 100,000 pods of each kind of the benchmark.
func TestPlansOfManyPods(t *testing.T) {
	if os.Getenv("JOIST_SCALE") != "full" {
		t.Skip("make scale runs it")
	}
	dir, scratch := t.TempDir(), t.TempDir()
	if err := contest.Alone.Generate(dir, 42); err != nil {
		t.Fatal(err)
	}
	samples, _, err := contest.Samples(dir, scratch)
	if err != nil {
		t.Fatal(err)
	}
	joist, err := contest.Joist(t.Context(), "", scratch)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := contest.Contest{Planners: []contest.Planner{joist}, Samples: samples, Runs: 1, Progress: func(int, int, string) {}}.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, m := range row.Results {
			fmt.Printf("scale: plan, %d pods of kind %s: %d nodes, %.2f CPU s, at most %.0f MB\n", m.Pods, m.Kind, m.Nodes, m.CPU(), m.PeakRSSMB)
			if !m.Valid() || m.Scheduled == 0 || m.PeakRSSMB > maxPlanMB {
				t.Errorf("%s: %d pods have a place; at most %d MB are allowed; %s %v", m.Scenario, m.Scheduled, maxPlanMB, m.Failure, m.Violations)
			}
		}
	}
}
