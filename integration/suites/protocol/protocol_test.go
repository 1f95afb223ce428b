package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/suites/protocol"
)

// TestLaunches visits every state of the launch protocol, and compares their number with states.md.
func TestLaunches(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("| configuration | states | steps | depth | settled states |\n|---|---|---|---|---|\n")
	for _, model := range protocol.LaunchModels() {
		result := protocol.Explore(model)
		if result.Broken != "" {
			t.Fatalf("%s: %s", model.Name, result.Text())
		}
		fmt.Printf("protocol: %s: %d states, %d steps, depth %d, %.1f s\n", model.Name, result.States, result.Steps, result.Depth, result.Took.Seconds())
		fmt.Fprintf(&rows, "| %s | %d | %d | %d | %d |\n", model.Name, result.States, result.Steps, result.Depth, result.Settled)
	}
	golden.Compare(t, "states.md", rows.String())
}

// launchBugs are bugs of suites/mutation that concern the launch protocol, and two that the model found in the product:
// bind-in-parallel and created-again. A bug is found in the configuration of its number, which has no
// counterexample without it.
var launchBugs = []struct {
	name          string
	configuration int
}{
	{"token-random", 3}, {"fence-removed", 3}, {"claims-after-launch", 3}, {"strict-limits-are-not", 0}, {"part-of-an-intent", 3},
	{"absence-as-death", 1}, {"slot-order", 3}, {"outbox-read-after-count", 1}, {"given-up-by-uid", 0}, {"unspent-is-refused", 3},
	{"no-list-is-empty", 3}, {"bind-in-parallel", 3}, {"created-again", 3},
}

// TestLaunchBugs explores the model with each bug and compares the broken promises with bugs.md. A bug that breaks none
// is listed as not found.
func TestLaunchBugs(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("| bug | configuration | broken promise | actions |\n|---|---|---|---|\n")
	for _, bug := range launchBugs {
		model := protocol.LaunchModels()[bug.configuration]
		model.Bug = bug.name
		result := protocol.Explore(model)
		if result.Broken == "" {
			fmt.Fprintf(&rows, "| %s | %s | not found | |\n", bug.name, model.Name)
			continue
		}
		t.Logf("%s: %s", bug.name, result.Text())
		fmt.Fprintf(&rows, "| %s | %s | %s | %d |\n", bug.name, model.Name, result.Broken, len(result.Trace))
	}
	golden.Compare(t, "bugs.md", rows.String())
}
