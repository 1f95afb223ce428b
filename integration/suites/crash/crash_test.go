// Package crash stops each service before and after the writes of a scenario, one fault per run: it crashes, or it pauses while
// its other replica goes on and something changes in the cluster. The point after the write that deletes a message is after the
// acknowledgement. No work may be lost, repeated or orphaned, and no pod may be evicted that a decision did not know.
// With JOIST_CRASH_POINTS=all it stops at every write, with sample at some, which the number JOIST_SAMPLE draws, with another value
// at the points whose names match it as a regular expression, and without a value at the first and the last write of each kind of
// each service.
package crash_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

var scenarios = []sim.FaultScenario{sim.Interruption, sim.Drift, sim.TerminateFirst, sim.Reboot, sim.Consolidation}

func TestCrashPoints(t *testing.T) {
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) { runPoints(t, scenario, 0, readChoice(t, 4).choose) })
	}
}

// pause is longer than a Lease is valid, so that the other replica leads and acts.
const pause = 70 * time.Second

// A service that was paused may act on what it read before the pause. Lifecycle pauses before or after a write of a NodeClaim or node,
// and the cluster changes meanwhile. With JOIST_CRASH_POINTS=all, each point is run once for each of sim.ClusterChanges, with a sample
// or without a value with one of them.
func TestPausePoints(t *testing.T) {
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			c := readChoice(t, 8)
			runPoints(t, scenario, pause, func(writes []string) []sim.FaultPoint {
				var out []sim.FaultPoint
				for _, p := range c.choose(writes) {
					if !writesNodes.MatchString(writes[p.Write-1]) {
						continue
					}
					changes := sim.ClusterChanges
					if !c.everyChange {
						i := len(out) % len(changes)
						changes = changes[i : i+1]
					}
					for _, change := range changes {
						p.Pause, p.Meanwhile = pause, change
						out = append(out, p)
					}
				}
				return out
			})
		})
	}
}

// writesNodes matches lifecycle's writes of NodeClaims and nodes.
var writesNodes = regexp.MustCompile(`^lifecycle-\d .* (NodeClaim|Node)$`)

// choice says which points are run. With everyChange a pause is run once for each change of the cluster.
type choice struct {
	choose      func(writes []string) []sim.FaultPoint
	everyChange bool
}

// wantedPoints is the value of JOIST_CRASH_POINTS.
var wantedPoints = os.Getenv("JOIST_CRASH_POINTS")

// readChoice chooses as JOIST_CRASH_POINTS says. A sample has one point in so many.
func readChoice(t *testing.T, oneIn int) choice {
	t.Helper()
	switch wantedPoints {
	case "":
		return choice{choose: chooseTypicalPoints}
	case "sample":
		number, err := strconv.ParseUint(os.Getenv("JOIST_SAMPLE"), 10, 64)
		if err != nil {
			t.Fatalf("JOIST_SAMPLE=%q is not a number: %v", os.Getenv("JOIST_SAMPLE"), err)
		}
		random := rand.New(rand.NewPCG(number, 0))
		return choice{choose: func(writes []string) []sim.FaultPoint {
			return slices.DeleteFunc(chooseAllPoints(writes), func(sim.FaultPoint) bool { return random.IntN(oneIn) > 0 })
		}}
	default: // Those whose names do not match are left out later.
		return choice{choose: chooseAllPoints, everyChange: true}
	}
}

// namePoint names a point as failures do, and as JOIST_CRASH_POINTS selects it.
func namePoint(p sim.FaultPoint, writes []string) string {
	when := "before"
	if p.After {
		when = "after"
	}
	name := fmt.Sprintf("%s write %d (%s)", when, p.Write, writes[p.Write-1])
	if p.Pause > 0 {
		name += ", " + p.Meanwhile.Name
	}
	return name
}

// keepMatching leaves out the points whose names JOIST_CRASH_POINTS does not match, if it is a regular expression.
func keepMatching(t *testing.T, points []sim.FaultPoint, writes []string) []sim.FaultPoint {
	t.Helper()
	if slices.Contains([]string{"", "all", "sample"}, wantedPoints) {
		return points
	}
	expression, err := regexp.Compile(wantedPoints)
	if err != nil {
		t.Fatalf("JOIST_CRASH_POINTS is neither all nor sample nor a regular expression: %v", err)
	}
	return slices.DeleteFunc(points, func(p sim.FaultPoint) bool { return !expression.MatchString(namePoint(p, writes)) })
}

// chooseAllPoints returns two points per write: before and after it.
func chooseAllPoints(writes []string) []sim.FaultPoint {
	var out []sim.FaultPoint
	for i := range writes {
		out = append(out, sim.FaultPoint{Write: i + 1}, sim.FaultPoint{Write: i + 1, After: true})
	}
	return out
}

// chooseTypicalPoints returns the points of the first and of the last write of each service and kind.
func chooseTypicalPoints(writes []string) []sim.FaultPoint {
	first, last := map[string]int{}, map[string]int{}
	for i, kind := range writes {
		if _, seen := first[kind]; !seen {
			first[kind] = i
		}
		last[kind] = i
	}
	all := chooseAllPoints(writes)
	return slices.DeleteFunc(all, func(p sim.FaultPoint) bool {
		kind := writes[p.Write-1]
		return p.Write-1 != first[kind] && p.Write-1 != last[kind]
	})
}

// runPoints plays the scenario once for each chosen point. Services have two replicas if pause is not 0.
func runPoints(t *testing.T, scenario sim.FaultScenario, pause time.Duration, choose func(writes []string) []sim.FaultPoint) {
	t.Helper()
	baseline, err := sim.PlayScenario(scenario, sim.FaultPoint{Pause: pause})
	if err != nil {
		t.Fatal(err)
	}
	if len(baseline.Violations) > 0 {
		t.Fatalf("violations without a fault: %s", baseline.FailureText())
	}
	chosen := keepMatching(t, choose(baseline.Writes), baseline.Writes)
	fmt.Printf("%s: %d writes, %d points\n", t.Name(), len(baseline.Writes), len(chosen))
	var mu sync.Mutex
	reached := map[string]int{}
	failed := 0
	points := make(chan sim.FaultPoint)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for point := range points {
				result, err := sim.PlayScenario(scenario, point)
				mu.Lock()
				reached[result.Actor+" "+result.Verb]++
				where := namePoint(point, baseline.Writes)
				switch {
				case err != nil:
					t.Errorf("%s: %v", where, err)
				case !result.Reached:
					t.Errorf("%s: no service got there, so the scenario is not deterministic", where)
				case len(result.Violations) > 0:
					if failed++; failed <= 3 {
						t.Errorf("%s: %s\nTo repeat: cd integration && JOIST_CRASH_POINTS='^%s$' go test ./suites/crash -v -run '^%s$'",
							where, result.FailureText(), regexp.QuoteMeta(where), t.Name())
					} else {
						t.Errorf("%s: %s", where, result.Violations[0])
					}
				}
				mu.Unlock()
			}
		})
	}
	for i, point := range chosen {
		points <- point
		if (i+1)%200 == 0 {
			fmt.Printf("%s: %d of %d points\n", t.Name(), i+1, len(chosen))
		}
	}
	close(points)
	workers.Wait()
	fmt.Printf("%s: %d points, %d failed; by service and write:\n", t.Name(), len(chosen), failed)
	for _, at := range slices.Sorted(maps.Keys(reached)) {
		fmt.Printf("  %-40s %d\n", at, reached[at])
	}
}
