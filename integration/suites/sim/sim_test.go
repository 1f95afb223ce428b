package sim_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// seeds reads how many seeds to play, or which one.
func seeds(t *testing.T) []int64 {
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
	out := make([]int64, count)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return out
}

// TestSeeds plays every seed and demands that no promise is broken. With JOIST_UNTIL it stops
// after the first seed that breaks this promise.
func TestSeeds(t *testing.T) {
	var mu sync.Mutex
	total := map[string]int{}
	calls, failed := 0, 0
	until, broken := os.Getenv("JOIST_UNTIL"), false
	work := make(chan int64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range work {
				report, err := sim.Run(seed)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				for kind, n := range report.Faults {
					total[kind] += n
				}
				calls += report.Calls
				if len(report.Violations) > 0 {
					failed++
					if i := slices.IndexFunc(report.Violations, func(v sim.Violation) bool { return v.Promise == until }); i >= 0 {
						broken = true
						t.Errorf("seed %d: %s", seed, report.Violations[i])
					}
					if failed <= 3 {
						t.Error(report.Failed())
					} else {
						t.Errorf("seed %d: %s", seed, report.Violations[0])
					}
				}
				mu.Unlock()
			}
		})
	}
	all := seeds(t)
	for i, seed := range all {
		mu.Lock()
		stop := broken
		mu.Unlock()
		if stop {
			break
		}
		work <- seed
		if (i+1)%50 == 0 {
			fmt.Printf("sim: %d of %d seeds\n", i+1, len(all))
		}
	}
	close(work)
	workers.Wait()
	if failed == 0 {
		reached(t, total, len(all))
	}
	fmt.Printf("sim: %d seeds, %d calls, %d failed; what went wrong on purpose:\n", len(all), calls, failed)
	for _, kind := range slices.Sorted(maps.Keys(grouped(total))) {
		fmt.Printf("  %-28s %d\n", kind, grouped(total)[kind])
	}
}

// reached demands that what the checkers look for was there to be seen: a promise about
// what never happens is kept by anybody.
func reached(t *testing.T, total map[string]int, seeds int) {
	t.Helper()
	// How many seeds it takes: ten times as many as come to it on average, or more.
	for kind, least := range map[string]int{
		"saga empty": 20, "deed spoil": 40, "deed forge": 40, "admitted in place of what leaves": 30, "saga under a budget": 20, "money is short": 40,
		"moved under a rate": 120, "as many as may move": 400, "saga underutilized": 100, "saga with replacements": 100, "saga that replaced": 150, "saga drifted": 400,
	} {
		if seeds >= least && total[kind] == 0 {
			t.Errorf("none of %d seeds came to: %s", seeds, kind)
		}
	}
}

// grouped sums the crashes of all actors and calls, and what the API server
// answered to all calls.
func grouped(total map[string]int) map[string]int {
	out := map[string]int{}
	for kind, n := range total {
		if strings.HasPrefix(kind, "crash ") {
			kind = "crash"
		}
		if _, told, ok := strings.Cut(kind, ": "); ok && strings.HasPrefix(kind, "api ") {
			kind = "api " + told
		}
		out[kind] += n
	}
	return out
}

// TestSameSeedSameRun plays a few seeds twice.
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
