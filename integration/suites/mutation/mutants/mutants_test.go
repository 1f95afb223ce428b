package mutants_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/suites/mutation/mutants"
)

// The example has code for each operator. Its mutants compile, and its tests, of which one tests another package, kill those
// that they notice.
func TestExample(t *testing.T) {
	root, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := mutants.Load(root, mutants.MutatedModule{Dir: "example", Patterns: []string{"./..."}, TestedBy: "example"})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(sources.Mutants))
	var results []mutants.RunResult
	if err := sources.Run(t.Context(), sources.Mutants, 2, func(r mutants.RunResult) {
		what := "survives"
		if r.Killed {
			what = "killed by " + r.By
		} else if !r.Reached {
			what = "not reached"
		}
		lines[r.Mutant.Number-1] = fmt.Sprintf("%-20s %s\n", what, r.Mutant)
		results = append(results, r)
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(results, func(a, b mutants.RunResult) int { return a.Mutant.Number - b.Mutant.Number })
	golden.Compare(t, "testdata/example.golden", strings.Join(lines, "")+"\n"+mutants.FormatTable(results, nil))
}

func TestFailingTestsWithoutMutant(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	test := "package example\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) { t.Error(\"always\") }\n"
	if err := os.WriteFile(filepath.Join(root, "example", "fails_test.go"), []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := mutants.Load(root, mutants.MutatedModule{Dir: "example", Patterns: []string{"."}})
	if err != nil {
		t.Fatal(err)
	}
	err = sources.Run(t.Context(), sources.Mutants[:1], 1, func(r mutants.RunResult) { t.Errorf("%s was run", r.Mutant) })
	if err == nil || !strings.Contains(err.Error(), "the tests of example fail without a mutant") {
		t.Errorf("Run = %v", err)
	}
}

func TestReadSurvivors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a reason", "- mutant: a\n  reason: 'log: the number of retries'\n", ""},
		{"no kind", "- mutant: a\n  reason: it does not matter\n", "has no known kind (use equivalent, log, performance, simulator"},
		{"no text", "- mutant: a\n  reason: 'log: '\n", "has no known kind"},
		{"twice", "- mutant: a\n  reason: 'log: b'\n- mutant: a\n  reason: 'log: b'\n", `lists "a" twice`},
		{"no list", "a: b\n", "reading the list of surviving mutants"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "survivors.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			reasons, err := mutants.ReadSurvivors(file)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("ReadSurvivors = %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || reasons["a"] != "log: the number of retries" {
				t.Errorf("ReadSurvivors = %v, %v", reasons, err)
			}
			if unknown := mutants.FindUnknown(reasons, []mutants.Mutant{{}}); !slices.Equal(unknown, []string{"a"}) {
				t.Errorf("FindUnknown = %v", unknown)
			}
		})
	}
}

// A new mutant changes one mutant of a sample at most, and another seed draws others.
func TestSampleIsStable(t *testing.T) {
	var all []mutants.Mutant
	for i := range 100 {
		all = append(all, mutants.Mutant{File: "a/b/c.go", Function: fmt.Sprint("f", i)}, mutants.Mutant{File: "ab/c.go", Function: fmt.Sprint("f", i)})
	}
	sample := mutants.FixedSample{Dir: "a", Size: 10, Seed: 1}
	names := func(s mutants.FixedSample, all []mutants.Mutant, of int) []string {
		t.Helper()
		drawn, got := s.Draw(all)
		if len(drawn) != 10 || got != of {
			t.Errorf("%d mutants of %d, want 10 of %d", len(drawn), got, of)
		}
		var out []string
		for _, m := range drawn {
			if m.File != "a/b/c.go" {
				t.Errorf("the sample has %v, which is in another directory", m)
			}
			out = append(out, m.Function)
		}
		return out
	}
	first, second := names(sample, all, 100), names(sample, append(all, mutants.Mutant{File: "a/b/c.go", Function: "g"}), 101)
	kept := len(slices.DeleteFunc(slices.Clone(first), func(name string) bool { return !slices.Contains(second, name) }))
	if kept < 9 {
		t.Errorf("with one mutant more, %v became %v", first, second)
	}
	sample.Seed = 2
	if slices.Equal(first, names(sample, all, 100)) {
		t.Errorf("two seeds draw %v", first)
	}
}

// Samples of one directory have no mutant in common, and the page states the share of each that was killed when it was drawn.
func TestSamplesAreDisjoint(t *testing.T) {
	var all []mutants.Mutant
	for i := range 25 {
		all = append(all, mutants.Mutant{File: "a/b.go", Function: fmt.Sprint("f", i)})
	}
	parts := mutants.DrawSamples(all, []mutants.FixedSample{{Dir: "a", Size: 10, Seed: 1}, {Dir: "a/b.go", Size: 10, Seed: 2, FirstKilled: 7}, {Dir: "a", Size: 10, Seed: 3}, {Dir: "a"}})
	seen := map[string]bool{}
	for i, want := range []int{10, 10, 5} {
		for _, m := range parts[i].Mutants {
			if seen[m.String()] {
				t.Errorf("%v is drawn twice", m)
			}
			seen[m.String()] = true
		}
		if len(parts[i].Mutants) != want || parts[i].Of != 25 {
			t.Errorf("sample %d: %d mutants of %d, want %d of 25", i, len(parts[i].Mutants), parts[i].Of, want)
		}
	}
	page := mutants.FormatPage(nil, parts)
	if want := "| a | 25 | 10 (seed 1) | not counted |\n| a/b.go | 25 | 10 (seed 2) | 70.0 % |\n| a | 25 | 5 (seed 3) | not counted |\n| a | 25 | none of the rest | – |\n"; !strings.Contains(page, want) {
		t.Errorf("the page does not contain\n%s\n%s", want, page)
	}
}

func TestPageRowsAreReadAgain(t *testing.T) {
	lived := mutants.Mutant{Package: "shared/a", Function: "f"}
	rows := mutants.CountRows([]mutants.RunResult{{Mutant: lived}, {Mutant: mutants.Mutant{Package: "shared/a"}, Killed: true}, {Mutant: mutants.Mutant{Package: "shared/b"}, Killed: true}},
		map[string]string{lived.String(): "log: a"})
	page := mutants.FormatPage(rows, nil)
	if want := "| shared/a | 2 | 1 | 0 | 0 | 1 | 0 | 50.0 % |\n| shared/b | 1 | 1 | 0 | 0 | 0 | 0 | 100.0 % |\n| total | 3 | 2 | 0 | 0 | 1 | 0 | 66.7 % |\n"; !strings.Contains(page, want) {
		t.Errorf("the page does not contain\n%s\n%s", want, page)
	}
	if read := mutants.ReadRows(page); !maps.Equal(read, rows) {
		t.Errorf("read %v, want %v", read, rows)
	}
}
