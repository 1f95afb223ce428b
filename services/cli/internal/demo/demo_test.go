package demo_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli/internal/demo"
)

var update = flag.Bool("update", false, "write the golden story anew")

// TestDemoTellsTheSameStory plays the default seed twice and compares it with
// the golden story.
func TestDemoTellsTheSameStory(t *testing.T) {
	first, second := play(t, 1), play(t, 1)
	if first != second {
		t.Fatal("the same seed told two stories")
	}
	const golden = "testdata/story.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; write it with: go test ./services/cli/internal/demo -update", err)
	}
	if first != string(want) {
		t.Errorf("the story has changed; look at it, and if it is right: go test ./services/cli/internal/demo -update\n%s", first)
	}
}

// TestEverySeedEndsWell plays some other seeds.
func TestEverySeedEndsWell(t *testing.T) {
	for seed := int64(2); seed <= 6; seed++ {
		story := play(t, seed)
		if !strings.Contains(story, "✓ 0 → 5 → 0") {
			t.Errorf("seed %d has no happy end:\n%s", seed, story)
		}
	}
}

func play(t *testing.T, seed int64) string {
	t.Helper()
	var out bytes.Buffer
	if err := demo.Play(t.Context(), &out, seed, false); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, out.String())
	}
	return out.String()
}
