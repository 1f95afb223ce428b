package sim_test

import (
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/integration/suites/sim"
)

// A node is repaired by a reboot: it is rebooted in place, once. The crash
// suite runs the same scenario with a crash at each write.
func TestRebootThroughAllServices(t *testing.T) {
	run, err := sim.PlayScenario(sim.Reboot, sim.FaultPoint{})
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Violations) > 0 {
		t.Fatal(run.FailureText())
	}
	reboots := slices.DeleteFunc(run.Writes, func(write string) bool { return write != "launcher-0 cloud.reboot" })
	if len(reboots) != 1 {
		t.Errorf("%d reboots", len(reboots))
	}
}
