// Package crash crashes each service before and after the writes of a scenario, one crash per run. The point
// after the write that deletes a message is after the acknowledgement. No work may be lost, repeated or orphaned.
// With JOIST_CRASH_POINTS=all it crashes at every write, with sample at one in four, which the number JOIST_SAMPLE draws,
// and otherwise at the first and the last write of each kind of each service.
package crash_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

func TestCrashPoints(t *testing.T) {
	choosePoints := chooseTypicalPoints
	switch wanted := os.Getenv("JOIST_CRASH_POINTS"); wanted {
	case "":
	case "all":
		choosePoints = chooseAllPoints
	case "sample":
		number, err := strconv.ParseUint(os.Getenv("JOIST_SAMPLE"), 10, 64)
		if err != nil {
			t.Fatalf("JOIST_SAMPLE=%q is not a number: %v", os.Getenv("JOIST_SAMPLE"), err)
		}
		random := rand.New(rand.NewPCG(number, 0))
		choosePoints = func(writes []string) []sim.CrashPoint { return drawPoints(writes, random) }
	default:
		t.Fatalf("JOIST_CRASH_POINTS=%q is unknown: set it to all or sample, or unset it for the first and the last write of each kind", wanted)
	}
	for _, scenario := range []sim.CrashScenario{sim.Interruption, sim.Drift, sim.TerminateFirst, sim.Reboot} {
		t.Run(scenario.Name, func(t *testing.T) { runPoints(t, scenario, choosePoints) })
	}
}

// chooseAllPoints returns two points per write: before and after it.
func chooseAllPoints(writes []string) []sim.CrashPoint {
	var out []sim.CrashPoint
	for i := range writes {
		out = append(out, sim.CrashPoint{Write: i + 1}, sim.CrashPoint{Write: i + 1, After: true})
	}
	return out
}

// drawPoints draws one in four points.
func drawPoints(writes []string, random *rand.Rand) []sim.CrashPoint {
	return slices.DeleteFunc(chooseAllPoints(writes), func(sim.CrashPoint) bool { return random.IntN(4) > 0 })
}

// chooseTypicalPoints returns the points of the first and of the last write of each service and kind.
func chooseTypicalPoints(writes []string) []sim.CrashPoint {
	first, last := map[string]int{}, map[string]int{}
	for i, kind := range writes {
		if _, seen := first[kind]; !seen {
			first[kind] = i
		}
		last[kind] = i
	}
	all := chooseAllPoints(writes)
	return slices.DeleteFunc(all, func(p sim.CrashPoint) bool {
		kind := writes[p.Write-1]
		return p.Write-1 != first[kind] && p.Write-1 != last[kind]
	})
}

func runPoints(t *testing.T, scenario sim.CrashScenario, choosePoints func(writes []string) []sim.CrashPoint) {
	baseline, err := sim.PlayScenario(scenario, sim.CrashPoint{})
	if err != nil {
		t.Fatal(err)
	}
	if len(baseline.Violations) > 0 {
		t.Fatalf("violations without a crash: %s", baseline.FailureText())
	}
	chosen := choosePoints(baseline.Writes)
	fmt.Printf("crash: %s: %d writes, %d crash points\n", scenario.Name, len(baseline.Writes), len(chosen))
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
	for i, point := range chosen {
		points <- point
		if (i+1)%200 == 0 {
			fmt.Printf("crash: %s: %d of %d points\n", scenario.Name, i+1, len(chosen))
		}
	}
	close(points)
	workers.Wait()
	fmt.Printf("crash: %s: %d points, %d failed; crashes by service and write:\n", scenario.Name, len(chosen), failed)
	for _, at := range slices.Sorted(maps.Keys(crashes)) {
		fmt.Printf("  %-40s %d\n", at, crashes[at])
	}
}
