package sim_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// TestHostileSeeds runs seeds with an attacker. JOIST_HOSTILE_SEEDS is their number, JOIST_HOSTILE_BASE the first.
func TestHostileSeeds(t *testing.T) {
	count, base := 16, int64(1)
	if text := os.Getenv("JOIST_HOSTILE_SEEDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("JOIST_HOSTILE_SEEDS=%q is not a number: %v", text, err)
		}
		count = n
	}
	if text := os.Getenv("JOIST_HOSTILE_BASE"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("JOIST_HOSTILE_BASE=%q is not a number: %v", text, err)
		}
		base = n
	}
	if os.Getenv("JOIST_SEED") != "" {
		base, count = seedNumbers(t)[0], 1
	}
	fmt.Printf("hostile: %d seeds from %d\n", count, base)
	var mu sync.Mutex
	total, failed := map[string]int{}, 0
	work := make(chan int64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range work {
				report, err := sim.RunHostile(seed)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				for kind, n := range report.Faults {
					total[kind] += n
				}
				if len(report.Violations) > 0 {
					failed++
					if failed <= 3 {
						t.Errorf("attacker %s, %s", report.Attacker, report.FailureText())
					} else {
						t.Errorf("attacker %s, seed %d: %s", report.Attacker, seed, report.Violations[0])
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range int64(count) {
		work <- base + i
	}
	close(work)
	workers.Wait()
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		fmt.Printf("  %-60s %d\n", kind, total[kind])
	}
}
