package fuzz

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../../.."

// TestFuzzers runs the fuzzers for the time of the variable FUZZTIME each, on one core each.
func TestFuzzers(t *testing.T) {
	each := os.Getenv("JOIST_FUZZTIME")
	if each == "" {
		t.Skip("make fuzz sets JOIST_FUZZTIME")
	}
	chosen, err := regexp.Compile(os.Getenv("JOIST_FUZZERS"))
	if err != nil {
		t.Fatalf("JOIST_FUZZERS is no regular expression: %v", err)
	}
	all, err := FindFuzzers(root)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(f Fuzzer) bool { return !chosen.MatchString(f.String()) })
	if len(all) == 0 {
		t.Fatalf("no fuzzer matches %q", chosen)
	}
	t.Logf("%d fuzzers, %s each", len(all), each)
	for _, f := range all {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			output, err := runFuzzer(t.Context(), f, each)
			result, err := ReadResult(output, err)
			if err != nil {
				t.Errorf("%v\n%s\nRepeat it with: (cd %s && GOWORK=%s go test ./%s -run '^%s$'). A failing input is kept in %s",
					err, output, f.Module, workspace(f), f.Package, f.Name, filepath.Join(f.Module, f.Package, "testdata/fuzz", f.Name))
			}
			t.Logf("%s: %d executions after %d known inputs, %d new inputs, %s", f, result.Inputs, result.Known, result.New, time.Since(start).Round(time.Second))
		})
	}
}

// workspace returns GOWORK for a fuzzer's module: the suites use the workspace, and other modules are tested alone.
func workspace(f Fuzzer) string {
	if f.Module == "integration" {
		return ""
	}
	return "off"
}

func runFuzzer(ctx context.Context, f Fuzzer, each string) (string, error) {
	command := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+f.Name+"$", "-fuzztime="+each, "-parallel=1", "./"+f.Package)
	command.Dir = filepath.Join(root, f.Module)
	command.Env = append(os.Environ(), "GOWORK="+workspace(f))
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestFindFuzzers finds the fuzzers of every module that has some.
func TestFindFuzzers(t *testing.T) {
	all, err := FindFuzzers(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Fuzzer{
		{"shared", "event", "FuzzDecode"}, {"services/cli", ".", "FuzzFlags"}, {"infra", "evaluator", "FuzzParse"}, {"integration", "suites/charts", "FuzzValues"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is missing in %v", want, all)
		}
	}
}

func TestReadResult(t *testing.T) {
	const lines = "fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\nfuzz: elapsed: 1s, gathering baseline coverage: 9/9 completed, now fuzzing with 1 workers\nfuzz: elapsed: 3s, execs: 31 (10/sec), new interesting: 2 (total: 9)\nfuzz: elapsed: 6s, execs: 99 (10/sec), new interesting: 4 (total: 11)\n"
	failed := errors.New("exit status 1")
	for _, tt := range []struct {
		name, output string
		err          error
		want         Executions
		fails        bool
	}{
		{"passes", lines + "PASS\nok \n", nil, Executions{99, 4, 9}, false},
		{"the time ends", lines + "--- FAIL: FuzzA (20.10s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\texample.com/a\t20.1s\n", failed, Executions{99, 4, 9}, false},
		{"an input fails", lines + "--- FAIL: FuzzA (2.10s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:3: wrong\n\n    Failing input written to testdata/fuzz/FuzzA/1\nFAIL\n", failed, Executions{99, 4, 9}, true},
		{"an input fails with an expired context", lines + "--- FAIL: FuzzA (2.10s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:3: context deadline exceeded\n", failed, Executions{99, 4, 9}, true},
		{"a panic", lines + "panic: runtime error\n", failed, Executions{99, 4, 9}, true},
		{"the time ends among known inputs", "fuzz: elapsed: 3s, gathering baseline coverage: 87/1752 completed\nPASS\n", nil, Executions{0, 0, 87}, false},
		{"no execution", "testing: warning: no fuzz tests to fuzz\nPASS\n", nil, Executions{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadResult(tt.output, tt.err)
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("%+v, %v", got, err)
			}
			if tt.fails && strings.TrimSpace(err.Error()) == "" {
				t.Error("no reason")
			}
		})
	}
}
