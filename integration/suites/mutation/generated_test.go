package mutation_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/suites/mutation/mutants"
)

// modules are the modules with generated mutants. Their packages hold the protocol and the decisions.
var modules = []mutants.MutatedModule{
	{Dir: "shared", Patterns: []string{"./cluster/lease", "./cluster/outbox", "./host", "./planning/solver"}},
	{Dir: "shared", Patterns: []string{"./planning/packing"}, TestedBy: "shared/planning/solver"},
	{Dir: "services/launcher", Patterns: []string{"./..."}, Without: []string{"services/launcher/launchertest"}, TestedBy: "services/launcher"},
	{Dir: "services/interruption", Patterns: []string{"./..."}, TestedBy: "services/interruption"},
	{Dir: "services/lifecycle", Patterns: []string{"./..."}, TestedBy: "services/lifecycle"},
	{Dir: "services/disruption", Patterns: []string{"./internal/consolidation"}, TestedBy: "services/disruption"},
}

// samples are the packages of which samples are checked. A sample that is drawn with JOIST_MUTANTS_FRESH is added with the number that
// the tests killed then.
var samples = []mutants.FixedSample{
	{Dir: "services/lifecycle", Size: 300, Seed: 1},
	{Dir: "services/lifecycle", Size: 100, Seed: 777002, FirstKilled: 88},
	{Dir: "shared/planning/solver", Size: 300, Seed: 1},
	{Dir: "shared/planning/solver", Size: 100, Seed: 2, FirstKilled: 72},
	{Dir: "shared/planning/solver", Size: 100, Seed: 3, FirstKilled: 77},
	{Dir: "shared/planning/solver", Size: 100, Seed: 4, FirstKilled: 86},
	{Dir: "shared/planning/solver", Size: 100, Seed: 743979, FirstKilled: 91},
	{Dir: "shared/planning/packing/exact.go", Size: 100, Seed: 1, FirstKilled: 79},
	{Dir: "shared/planning/packing", Size: 100, Seed: 1, FirstKilled: 85},
	{Dir: "shared/planning/packing", Size: 100, Seed: 2, FirstKilled: 83},
}

// selectDrawn returns the mutants that are checked, which are all of the packages without samples, and the samples.
func selectDrawn(all []mutants.Mutant) (drawn []mutants.Mutant, parts []mutants.DrawnSample) {
	drawn = slices.DeleteFunc(slices.Clone(all), func(m mutants.Mutant) bool {
		return slices.ContainsFunc(samples, func(s mutants.FixedSample) bool { return s.Has(m) })
	})
	parts = mutants.DrawSamples(all, samples)
	for _, part := range parts {
		drawn = append(drawn, part.Mutants...)
	}
	return drawn, parts
}

// sampleSize is the number of mutants that are run unless JOIST_MUTANTS has another value.
const sampleSize = 100

// TestMutants runs the packages' tests with generated mutants. A mutant that survives must be listed with a reason, and a listed
// mutant must survive. JOIST_MUTANTS=all runs all drawn mutants, and another value those whose identity matches it as a regular
// expression: the drawn ones, or if it matches none of these, any. JOIST_MUTANTS_FRESH is a directory or a file, and runs a sample
// of its mutants that were never drawn. JOIST_MUTANTS_SEED repeats a sample.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := mutants.ReadSurvivors("testdata/survivors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sources []mutants.MutatedCode
	var all []mutants.Mutant
	for _, m := range modules {
		source, err := mutants.Load(root, m)
		if err != nil {
			t.Fatal(err)
		}
		sources, all = append(sources, source), append(all, source.Mutants...)
	}
	for _, name := range mutants.FindUnknown(reasons, all) {
		t.Errorf("testdata/survivors.yaml lists a mutant that does not exist; remove it, or write it as it is now: %s", name)
	}
	drawn, parts := selectDrawn(all)
	wanted := chooseMutants(t, drawn, all)
	var results []mutants.RunResult
	started := time.Now()
	for _, source := range sources {
		var own []mutants.Mutant
		for _, m := range source.Mutants {
			if wanted[m.String()] {
				own = append(own, m)
			}
		}
		if len(own) == 0 {
			continue
		}
		if err := source.Run(t.Context(), own, runtime.GOMAXPROCS(0), func(r mutants.RunResult) {
			results = append(results, r)
			checkResult(t, r, reasons[r.Mutant.String()])
		}); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("JOIST_MUTANTS") != "" {
		comparePage(t, mutants.CountRows(results, reasons), drawn, parts)
	}
	fmt.Print(mutants.FormatTable(results, reasons))
	fmt.Printf("mutants: %d of %d in %s\n", len(results), len(drawn), time.Since(started).Round(time.Second))
}

// comparePage compares the rows of the packages that were run as a whole with the page.
func comparePage(t *testing.T, rows map[string]mutants.PageRow, drawn []mutants.Mutant, parts []mutants.DrawnSample) {
	t.Helper()
	const file = "../../../deploy/docs/mutations.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, m := range drawn {
		want[m.Package]++
	}
	old, all, whole := mutants.ReadRows(string(page)), map[string]mutants.PageRow{}, false
	for name, n := range want {
		if row, ok := old[name]; ok {
			all[name] = row
		}
		if rows[name].All == n {
			all[name], whole = rows[name], true
		}
	}
	if !whole {
		return
	}
	golden.Compare(t, file, mutants.FormatPage(all, parts))
}

// checkResult fails the test for a survivor that is not listed, and for a listed mutant that is killed.
func checkResult(t *testing.T, r mutants.RunResult, reason string) {
	t.Helper()
	switch {
	case !r.Killed && reason == "" && r.Reached:
		t.Errorf("survived: %s", r.Mutant)
	case !r.Killed && reason == "":
		t.Errorf("no test reaches: %s", r.Mutant)
	case r.Killed && reason != "":
		t.Errorf("a test of %s kills a mutant that testdata/survivors.yaml lists; remove it there: %s", r.By, r.Mutant)
	}
}

// readSeed returns JOIST_MUTANTS_SEED, or a new seed.
func readSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("JOIST_MUTANTS_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("JOIST_MUTANTS_SEED=%s is not a number (use the seed of an earlier run): %v", text, err)
	}
	return seed
}

// chooseFresh returns the identities of a sample of the mutants in a directory or file that are not drawn.
func chooseFresh(t *testing.T, dir string, drawn, all []mutants.Mutant) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, m := range drawn {
		known[m.String()] = true
	}
	fresh := mutants.FixedSample{Dir: dir, Size: sampleSize, Seed: int(readSeed(t) % 1e6)}
	part, of := fresh.Draw(slices.DeleteFunc(slices.Clone(all), func(m mutants.Mutant) bool { return known[m.String()] }))
	if of == 0 {
		t.Fatalf("JOIST_MUTANTS_FRESH=%s: all of its mutants are checked, or it has none (use a directory or a file of the samples in deploy/docs/mutations.md)", dir)
	}
	fmt.Printf("mutants: a sample of %d of %d in %s that were never drawn, JOIST_MUTANTS_SEED=%d repeats it\n", len(part), of, dir, fresh.Seed)
	chosen := map[string]bool{}
	for _, m := range part {
		chosen[m.String()] = true
	}
	return chosen
}

// chooseMutants returns the identities of the mutants that are run.
func chooseMutants(t *testing.T, drawn, all []mutants.Mutant) map[string]bool {
	t.Helper()
	which := os.Getenv("JOIST_MUTANTS")
	if dir := os.Getenv("JOIST_MUTANTS_FRESH"); dir != "" {
		return chooseFresh(t, dir, drawn, all)
	}
	chosen := map[string]bool{}
	switch which {
	case "":
		seed := readSeed(t)
		fmt.Printf("mutants: a sample of %d of %d, JOIST_MUTANTS_SEED=%d repeats it\n", sampleSize, len(drawn), seed)
		order := rand.New(rand.NewPCG(seed, 0)).Perm(len(drawn))
		for _, i := range order[:min(sampleSize, len(order))] {
			chosen[drawn[i].String()] = true
		}
		return chosen
	case "all":
		which = ""
	}
	pattern, err := regexp.Compile(which)
	if err != nil {
		t.Fatalf("JOIST_MUTANTS is neither all nor a regular expression: %v", err)
	}
	for _, from := range [][]mutants.Mutant{drawn, all} {
		for _, m := range from {
			if name := m.String(); pattern.MatchString(name) {
				chosen[name] = true
			}
		}
		if len(chosen) > 0 {
			return chosen
		}
	}
	t.Fatalf("JOIST_MUTANTS=%s matches no mutant (it is matched with lines such as %q)", which, all[0])
	return nil
}
