package sim_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// firstSeed returns JOIST_SAMPLE, or 1.
func firstSeed(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("JOIST_SAMPLE")
	if text == "" {
		return 1
	}
	first, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("JOIST_SAMPLE=%q is not a number: %v", text, err)
	}
	return first
}

// seedNumbers returns the seed of JOIST_SEED, or as many as JOIST_SEEDS says, from firstSeed on.
func seedNumbers(t *testing.T) []int64 {
	t.Helper()
	if one := os.Getenv("JOIST_SEED"); one != "" {
		seed, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			t.Fatalf("JOIST_SEED=%q is not a number: %v", one, err)
		}
		return []int64{seed}
	}
	count := 40
	if many := os.Getenv("JOIST_SEEDS"); many != "" {
		n, err := strconv.Atoi(many)
		if err != nil {
			t.Fatalf("JOIST_SEEDS=%q is not a number: %v", many, err)
		}
		count = n
	}
	return seedsFrom(firstSeed(t), count)
}

// seedsFrom returns count seeds.
func seedsFrom(first int64, count int) []int64 {
	out := make([]int64, count)
	for i := range out {
		out[i] = first + int64(i)
	}
	return out
}

// runSeeds runs the seeds on all cores, and calls handle with one report at a time until it returns false.
func runSeeds[R any](seeds []int64, run func(seed int64) (R, error), handle func(seed int64, report R, err error) bool) {
	var mu sync.Mutex
	stopped := false
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, seed := range seeds {
		mu.Lock()
		stop := stopped
		mu.Unlock()
		if stop {
			break
		}
		group.Go(func() error {
			report, err := run(seed)
			mu.Lock()
			defer mu.Unlock()
			stopped = !handle(seed, report, err) || stopped
			return nil
		})
	}
	_ = group.Wait() // The functions return no errors.
}

// TestSeeds runs every seed and requires that no promise is broken. With JOIST_UNTIL it stops
// after the first seed that breaks this promise.
func TestSeeds(t *testing.T) {
	total := map[string]int{}
	calls, failed, ended := 0, 0, 0
	until := os.Getenv("JOIST_UNTIL")
	all := seedNumbers(t)
	runSeeds(all, sim.Run, func(seed int64, report sim.Report, err error) bool {
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if ended++; ended%50 == 0 {
			fmt.Printf("sim: %d of %d seeds\n", ended, len(all))
		}
		for kind, n := range report.Faults {
			total[kind] += n
		}
		calls += report.Calls
		if len(report.Violations) == 0 {
			return true
		}
		if failed++; failed <= 3 {
			t.Error(report.FailureText())
		} else {
			t.Errorf("seed %d: %s", seed, report.Violations[0])
		}
		i := slices.IndexFunc(report.Violations, func(v sim.Violation) bool { return v.Promise == until })
		if i >= 0 {
			t.Errorf("seed %d: %s", seed, report.Violations[i])
		}
		return i < 0
	})
	if failed == 0 {
		requireOccurrences(t, total, len(all))
	}
	fmt.Printf("sim: %d seeds, %d calls, %d failed; injected faults:\n", len(all), calls, failed)
	for _, kind := range slices.Sorted(maps.Keys(groupFaults(total))) {
		fmt.Printf("  %-28s %d\n", kind, groupFaults(total)[kind])
	}
}

// requireOccurrences requires that the checked situations occurred: a promise about a situation that never occurs
// is worth nothing.
func requireOccurrences(t *testing.T, total map[string]int, seeds int) {
	t.Helper()
	// The number of seeds is at least ten times the average that reaches the situation.
	for kind, least := range map[string]int{
		"disruption empty": 20, "action spoil": 40, "action forge": 40, "admitted in place of leaving nodes": 30, "disruption under a budget": 20, "price limit nearly reached": 40,
		"moved under an eviction rate": 120, "eviction rate reached": 400, "disruption underutilized": 100, "disruption with replacements": 100, "disruption that replaced": 150, "disruption drifted": 400,
		"plan with devices": 40, "deletion cost written": 40, "ran in a reservation": 40, "plan for a reservation": 40,
		"cloud long-lag": 20, "cloud slow-boot": 20, "queue duplicated-late": 20, "queue stale-receipt-deleted": 150, "queue stale-receipt-hidden": 150, "queue stale-receipt-ignored": 150,
		"queue event-delayed": 20, "blob slow-down-burst": 20, "clock ahead by more than 15 s": 20, "clock behind by more than 15 s": 20, "clocks of two replicas differ": 20,
		"disruption unhealthy": 100, "disruption that terminates first": 300, "expressions evaluated": 60, "pod with default constraints": 60,
	} {
		if seeds >= least && total[kind] == 0 {
			t.Errorf("no seed of %d reached: %s", seeds, kind)
		}
	}
}

// groupFaults sums the crashes of all actors and calls, and the answers of the API server to all calls.
func groupFaults(total map[string]int) map[string]int {
	out := map[string]int{}
	for kind, n := range total {
		if strings.HasPrefix(kind, "crash ") {
			kind = "crash"
		}
		if _, answer, ok := strings.Cut(kind, ": "); ok && strings.HasPrefix(kind, "api ") {
			kind = "api " + answer
		}
		out[kind] += n
	}
	return out
}

// TestSameSeedSameRun runs a few seeds twice.
func TestSameSeedSameRun(t *testing.T) {
	for seed := int64(1); seed <= 3; seed++ {
		first, err := sim.Run(seed)
		if err != nil {
			t.Fatal(err)
		}
		second, err := sim.Run(seed)
		if err != nil {
			t.Fatal(err)
		}
		if first.Hash != second.Hash || first.Calls != second.Calls {
			t.Errorf("seed %d: %d calls with hash %x, then %d calls with hash %x", seed, first.Calls, first.Hash, second.Calls, second.Hash)
		}
	}
}

// TestMain collects garbage less often: a run is short and its heap is small.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
