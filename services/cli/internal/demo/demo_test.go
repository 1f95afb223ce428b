package demo_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli/internal/demo"
)

var update = flag.Bool("update", false, "update the golden file")

// TestDemoIsDeterministic runs the default seed twice and compares the output with the golden
// file.
func TestDemoIsDeterministic(t *testing.T) {
	first, second := runDemo(t, 1), runDemo(t, 1)
	if first != second {
		t.Fatal("two runs of the same seed differ")
	}
	const golden = "testdata/demo.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; create it with: go test ./services/cli/internal/demo -update", err)
	}
	if first != string(want) {
		t.Errorf("the output has changed; if it is correct, run go test ./services/cli/internal/demo -update\n%s", first)
	}
}

// TestDemoCompletesForEverySeed runs other seeds.
func TestDemoCompletesForEverySeed(t *testing.T) {
	for seed := int64(2); seed <= 6; seed++ {
		output := runDemo(t, seed)
		if !strings.Contains(output, "✓ 0 → 5 → 0") {
			t.Errorf("seed %d does not complete:\n%s", seed, output)
		}
	}
}

func runDemo(t *testing.T, seed int64) string {
	t.Helper()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out, demo.RunOptions{Seed: seed}); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, out.String())
	}
	return out.String()
}
