package sim_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// TestScenarios runs the scenarios without a crash.
func TestScenarios(t *testing.T) {
	for _, tale := range []sim.FaultScenario{sim.Interruption, sim.Drift} {
		t.Run(tale.Name, func(t *testing.T) {
			calm, err := sim.PlayScenario(tale, sim.FaultPoint{})
			if err != nil {
				t.Fatal(err)
			}
			if len(calm.Violations) > 0 {
				t.Fatal(calm.FailureText())
			}
		})
	}
}
