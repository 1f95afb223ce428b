package sim_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/integration/sim"
)

// TestStory plays the story in which nobody dies.
func TestStory(t *testing.T) {
	calm, err := sim.Story(sim.Point{})
	if err != nil {
		t.Fatal(err)
	}
	if len(calm.Violations) > 0 {
		t.Fatal(calm.Failed())
	}
}
