package differential

import (
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// TestMain keeps rapid from writing files, because the scenario has all information, and
// fixes the seed, because a pull request must not fail for an unrelated reason.
// -rapid.seed selects another seed.
func TestMain(m *testing.M) {
	flag.Parse()
	defaults := map[string]string{"rapid.nofailfile": "true", "rapid.seed": "1"}
	flag.Visit(func(f *flag.Flag) { delete(defaults, f.Name) })
	for name, value := range defaults {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestAgainstUpstream plans random scenarios with both.
func TestAgainstUpstream(t *testing.T) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			seen := &tally{}
			rapid.Check(t, func(t *rapid.T) {
				s := drawn(t, g.on)
				compare(t, written(s), compete(s), seen)
			})
			t.Log(seen)
		})
	}
}

// TestReplay plans the scenarios that were counterexamples once.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/replay/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			seen := &tally{}
			compare(t, text, true, seen)
			t.Log(seen)
		})
	}
}

// fataler is a *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare plans a scenario with both and checks the plans.
func compare(t fataler, text []byte, competing bool, seen *tally) {
	t.Helper()
	s, err := planvalidator.ParseScenario(text, readSibling)
	if err != nil {
		t.Fatalf("reading the scenario for the plan validator: %v", err)
	}
	us, them := plan(t, s, text, func(text []byte) ([]byte, error) { return ours(text, nil) }), plan(t, s, text, theirs)
	if len(us.violations) > 0 {
		t.Fatalf("our plan is not valid: %v\nscenario: %s", us.violations, text)
	}
	bound, err := planvalidator.LowerBound(s)
	if err != nil {
		t.Fatalf("%v\nscenario: %s", err, text)
	}
	if len(us.Unscheduled) == 0 && us.Summary.DollarsPerHour < bound*(1-1e-6) {
		t.Fatalf("our plan costs %f and the bound is %f\nscenario: %s", us.Summary.DollarsPerHour, bound, text)
	}
	seen.add(us, them, bound, text)
	if len(them.violations) > 0 {
		return // it placed pods where they are not allowed
	}
	if us.placed() < them.placed() {
		t.Fatalf("we place %d pods and Karpenter %d; we say %v, it says %v\nscenario: %s", us.placed(), them.placed(), us.Unscheduled, them.Unscheduled, text)
	}
	if competing {
		return
	}
	theirs := map[string]bool{}
	for name := range them.Unscheduled {
		theirs[path.Base(name)] = true // workload names are unique across namespaces
	}
	for _, name := range slices.Sorted(maps.Keys(us.Unscheduled)) {
		if !theirs[path.Base(name)] {
			t.Fatalf("Karpenter places %s and we say %s\nscenario: %s", name, us.Unscheduled[name], text)
		}
	}
}

func plan(t fataler, s *planvalidator.Scenario, text []byte, by func([]byte) ([]byte, error)) judged {
	t.Helper()
	made, err := by(text)
	if err != nil {
		t.Fatalf("%v\nscenario: %s", err, text)
	}
	out, err := judgeIt(s, made)
	if err != nil {
		t.Fatalf("%v\nscenario: %s", err, text)
	}
	return out
}
