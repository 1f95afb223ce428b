// Package crash crashes each service before and after every write of a scenario, one crash per run. The point
// after the write that deletes a message is after the acknowledgement. No work may be lost, repeated or orphaned.
package crash_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

func TestEveryCrashPoint(t *testing.T) {
	for _, scenario := range []sim.CrashScenario{sim.Interruption, sim.Drift} {
		t.Run(scenario.Name, func(t *testing.T) { runAllPoints(t, scenario) })
	}
}

func runAllPoints(t *testing.T, scenario sim.CrashScenario) {
	baseline, err := sim.PlayScenario(scenario, sim.CrashPoint{})
	if err != nil {
		t.Fatal(err)
	}
	if len(baseline.Violations) > 0 {
		t.Fatalf("violations without a crash: %s", baseline.FailureText())
	}
	fmt.Printf("crash: %s: %d writes, %d crash points\n", scenario.Name, baseline.Writes, 2*baseline.Writes)
	var mu sync.Mutex
	crashes := map[string]int{}
	failed := 0
	points := make(chan sim.CrashPoint)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for point := range points {
				crash, err := sim.PlayScenario(scenario, point)
				mu.Lock()
				crashes[crash.Actor+" "+crash.Verb]++
				switch {
				case err != nil:
					t.Errorf("crash at write %d, after %v: %v", point.Write, point.After, err)
				case !crash.Crashed:
					t.Errorf("crash at write %d, after %v: no service crashed, so the scenario is not deterministic", point.Write, point.After)
				case len(crash.Violations) > 0:
					if failed++; failed <= 3 {
						t.Errorf("%s crashed at %s (write %d, after %v): %s", crash.Actor, crash.Verb, point.Write, point.After, crash.FailureText())
					} else {
						t.Errorf("%s crashed at %s (write %d, after %v): %s", crash.Actor, crash.Verb, point.Write, point.After, crash.Violations[0])
					}
				}
				mu.Unlock()
			}
		})
	}
	for write := 1; write <= baseline.Writes; write++ {
		points <- sim.CrashPoint{Write: write}
		points <- sim.CrashPoint{Write: write, After: true}
		if write%200 == 0 {
			fmt.Printf("crash: %s: %d of %d writes\n", scenario.Name, write, baseline.Writes)
		}
	}
	close(points)
	workers.Wait()
	fmt.Printf("crash: %s: %d points, %d failed; crashes by service and write:\n", scenario.Name, 2*baseline.Writes, failed)
	for _, at := range slices.Sorted(maps.Keys(crashes)) {
		fmt.Printf("  %-40s %d\n", at, crashes[at])
	}
}
