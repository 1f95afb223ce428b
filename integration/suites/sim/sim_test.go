package sim_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

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

// finds is how many seeds must break the promise of JOIST_UNTIL before TestSeeds stops: JOIST_FINDS, or 1.
func finds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("JOIST_FINDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("JOIST_FINDS=%q is not a number: %v", text, err)
	}
	return n
}

// TestSeeds runs every seed and requires that no promise is broken. With JOIST_UNTIL it stops
// after the first seed that breaks this promise, or after JOIST_FINDS of them.
func TestSeeds(t *testing.T) {
	total := map[string]int{}
	calls, failed, ended, began := 0, 0, 0, time.Now()
	until, most := os.Getenv("JOIST_UNTIL"), finds(t)
	var found []int64
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
			found = append(found, seed)
		}
		return len(found) < most
	})
	if until != "" {
		slices.Sort(found)
		fmt.Printf("sim: seeds %d to %d, of which %v broke the promise %q\n", all[0], all[0]+int64(ended)-1, found, until)
	}
	if failed == 0 {
		requireOccurrences(t, groupFaults(total), len(all))
	}
	fmt.Printf("sim: %d seeds, %d events, %d failed, in %s on %s; injected faults:\n", ended, calls, failed, time.Since(began).Round(time.Second), describeMachine())
	printHistogram(groupFaults(total))
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
