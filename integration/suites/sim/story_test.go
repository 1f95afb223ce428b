package sim_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// TestStory plays the stories in which nobody dies.
func TestStory(t *testing.T) {
	for _, tale := range []sim.Tale{sim.TakenBack, sim.Replaced} {
		t.Run(tale.Name, func(t *testing.T) {
			calm, err := sim.Story(tale, sim.Point{})
			if err != nil {
				t.Fatal(err)
			}
			if len(calm.Violations) > 0 {
				t.Fatal(calm.Failed())
			}
		})
	}
}
