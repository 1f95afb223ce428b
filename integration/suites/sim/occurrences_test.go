package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// leastSeeds has each injected fault and each checked situation, with the number of seeds in which at least one must
// occur: a run without a fault does not show that Joist survives it, and a promise about a situation that never occurs
// is worth nothing. The number is at least ten times the average number of seeds until the kind occurs.
var leastSeeds = map[string]int{
	// Changes of the cluster and of AWS.
	"action burst": 100, "action conflict": 100, "action creation": 100, "action delete-claim": 100, "action drift": 100, "action expire": 100, "action fail": 100,
	"action fill-reservation": 100, "action forge": 40, "action interrupt": 100, "action lag": 100, "action reclaim": 100, "action redrive": 100,
	"action replay": 100, "action roll": 100, "action scale": 100, "action shortage": 100, "action sicken": 100, "action silence": 100, "action spoil": 40,
	// Services.
	"crash": 100, "pause": 100,
	// The API server.
	"api conflict": 100, "api denied": 100, "api invalid": 100, "api throttled": 100, "api unknown": 100, "api unknown, but executed": 100, "burst of 409": 100,
	"burst of 429": 100, "burst of 500": 100, "expired watches": 100, "rejected NodeClaims": 100, "silence": 100,
	// S3.
	"blob get-failed": 100, "blob missing": 100, "blob put-answer-lost": 100, "blob put-failed": 100, "blob written-failed": 100,
	"batch with parts": 20, "blob slow-down-burst": 20,
	// EC2 and the machines' clocks.
	"blob slow-down": 100, "cloud answer-lost": 100, "cloud call-lost": 100, "cloud event-not-sent": 100, "cloud lag": 100, "cloud throttled": 100,
	"cloud long-lag": 20, "cloud slow-boot": 20, "clock ahead by more than 15 s": 20, "clock behind by more than 15 s": 20, "clocks of two replicas differ": 20,
	// SQS and EventBridge.
	"queue duplicated-late": 20, "queue event-delayed": 20, "queue stale-receipt-deleted": 150, "queue stale-receipt-hidden": 150, "queue stale-receipt-ignored": 150,
	"queue delayed": 100, "queue delete-failed": 100, "queue duplicated": 100, "queue event-lost": 100, "queue hide-failed": 100, "queue receive-answer-lost": 100,
	"queue receive-failed": 100, "queue reordered": 100, "queue routed-twice": 100, "queue send-answer-lost": 100, "queue send-failed": 100,
	// Faults aimed at one moment.
	"bindings interrupted": 100, "reservation filled before a launch": 100,
	// Checked situations.
	"admitted in place of leaving nodes": 30, "counted against limits again": 100, "deletion cost written": 40, "disruption drifted": 400, "disruption empty": 20,
	"disruption that replaced": 150, "disruption that terminates first": 300, "disruption under a budget": 20, "disruption underutilized": 100,
	"disruption unhealthy": 100, "disruption with replacements": 100, "eviction rate reached": 400, "expressions evaluated": 60, "instance rebooted": 200,
	"moved under an eviction rate": 120, "plan for a reservation": 40, "plan with devices": 40, "pod with default constraints": 60,
	"price limit nearly reached": 40, "ran in a reservation": 40, "steps compared with a model": 10,
}

// requireOccurrences requires that each kind occurred, if there were enough seeds.
func requireOccurrences(t *testing.T, total map[string]int, seeds int) {
	t.Helper()
	for _, kind := range findMissing(total, seeds) {
		t.Errorf("no seed of %d reached: %s (it must occur in %d seeds; see leastSeeds)", seeds, kind, leastSeeds[kind])
	}
}

// findMissing returns the kinds that did not occur although there were enough seeds, sorted.
func findMissing(total map[string]int, seeds int) []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(leastSeeds)) {
		if seeds >= leastSeeds[kind] && total[kind] == 0 {
			out = append(out, kind)
		}
	}
	return out
}

// TestMissingFaultsAreNamed requires that a fault which never happened in enough seeds is named, and no other.
func TestMissingFaultsAreNamed(t *testing.T) {
	all := map[string]int{}
	for kind := range leastSeeds {
		all[kind] = 1
	}
	if missing := findMissing(all, 1000); missing != nil {
		t.Errorf("all faults happened, and these are missing: %v", missing)
	}
	for kind, least := range leastSeeds {
		total := maps.Clone(all)
		delete(total, kind)
		if missing := findMissing(total, least); !slices.Equal(missing, []string{kind}) {
			t.Errorf("%q did not happen in %d seeds, and these are missing: %v", kind, least, missing)
		}
		if missing := findMissing(total, least-1); missing != nil {
			t.Errorf("%d seeds are too few for %q, and these are missing: %v", least-1, kind, missing)
		}
	}
}

// printHistogram prints how often each kind occurred, and marks the kinds that may be missing in any number of seeds.
func printHistogram(total map[string]int) {
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		note := ""
		if _, listed := leastSeeds[kind]; !listed && !strings.HasPrefix(kind, "seeds with ") {
			note = "  (not in leastSeeds, so it may be missing)"
		}
		fmt.Printf("  %-36s %d%s\n", kind, total[kind], note)
	}
}

// describeMachine returns the processor and the number of cores.
func describeMachine() string {
	m := contest.ThisMachine()
	return fmt.Sprintf("%d cores of %s (load %.1f)", m.Cores, m.CPU, m.Load)
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
