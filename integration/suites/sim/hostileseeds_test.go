package sim_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// TestHostileSeeds runs seeds with an attacker. JOIST_HOSTILE_SEEDS is their number and JOIST_HOSTILE_BASE the first of
// them, which is drawn again for each run without it. JOIST_SEED runs one.
func TestHostileSeeds(t *testing.T) {
	count, base := 16, time.Now().UnixNano()&(1<<40-1)
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
	// A small world makes much garbage and keeps little.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	fmt.Printf("hostile: %d seeds from %d (JOIST_HOSTILE_BASE repeats them, SEED=%d the first)\n", count, base, base)
	total, failed := map[string]int{}, 0
	runSeeds(seedsFrom(base, count), sim.RunHostile, func(seed int64, report sim.Report, err error) bool {
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for kind, n := range report.Faults {
			total[kind] += n
		}
		if len(report.Violations) == 0 {
			return true
		}
		// testing prints errors only at the end if the test runs without -v.
		fmt.Printf("hostile: seed %d failed: attacker %s, %s\n", seed, report.Attacker, report.Violations[0])
		if failed++; failed <= 3 {
			t.Errorf("attacker %s, %s", report.Attacker, report.FailureText())
		} else {
			t.Errorf("attacker %s, seed %d: %s", report.Attacker, seed, report.Violations[0])
		}
		return true
	})
	requireAttacks(t, total, count)
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		fmt.Printf("  %-60s %d\n", kind, total[kind])
	}
}

// requireAttacks requires that each attacker did each kind of attack, in runs that are long enough.
func requireAttacks(t *testing.T, total map[string]int, count int) {
	t.Helper()
	if count < 400 {
		return
	}
	for _, want := range sim.AttackKinds() {
		if total["attack "+want] == 0 {
			t.Errorf("no seed of %d had the attack %s", count, want)
		}
	}
}

// TestHostilePromisesAreOnThePage compares the table of threat-model.md with the checkers.
func TestHostilePromisesAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../../deploy/docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| invariant | checker | does not hold against |\n|---|---|---|\n")
	for _, p := range sim.HostilePromises {
		except := strings.Join(p.Except, ", ")
		if except == "" {
			except = "-"
		}
		fmt.Fprintf(&want, "| %s | `%s` | %s |\n", p.Name, p.Checker, except)
	}
	want.WriteString("\n| attacker | longest time pending during the attack | recovery after it |\n|---|---|---|\n")
	for _, name := range sim.Attackers {
		b, during := sim.DelayBounds[name], "as long as it lasts"
		if b.During > 0 {
			during = fmt.Sprintf("%.0f min", b.During.Minutes())
		}
		fmt.Fprintf(&want, "| %s | %s | %.0f min |\n", name, during, b.After.Minutes())
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("threat-model.md does not contain these tables:\n%s", want.String())
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	for _, p := range sim.HostilePromises {
		if !strings.Contains(code.String(), ") "+p.Checker+"(") {
			t.Errorf("no checker %s exists", p.Checker)
		}
	}
}
