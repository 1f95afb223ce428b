package protocol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/suites/protocol"
)

// configuration is a configuration of a model, and explores it with a planted bug or with "".
type configuration struct {
	name    string
	explore func(bug string) protocol.Exploration
}

// launches and disruptions return the configurations of the models.
func launches() (out []configuration) {
	for _, model := range protocol.LaunchModels() {
		out = append(out, configuration{model.Name, func(bug string) protocol.Exploration {
			model.Bug = bug
			return protocol.Explore(model)
		}})
	}
	return out
}

func disruptions() (out []configuration) {
	for _, model := range protocol.DisruptionModels() {
		out = append(out, configuration{model.Name, func(bug string) protocol.Exploration {
			model.Bug = bug
			return protocol.Explore(model)
		}})
	}
	return out
}

// TestLaunches visits every state of the launch protocol, and compares their number with states.md.
func TestLaunches(t *testing.T) { exploreAll(t, "states.md", launches()) }

// TestDisruptions visits every state of the disruption of nodes, and compares their number with disruptionstates.md.
func TestDisruptions(t *testing.T) { exploreAll(t, "disruptionstates.md", disruptions()) }

func exploreAll(t *testing.T, file string, configurations []configuration) {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("| configuration | states | steps | depth | settled states |\n|---|---|---|---|---|\n")
	for _, c := range configurations {
		result := c.explore("")
		if result.Broken != "" {
			t.Fatalf("%s: %s", c.name, result.Text())
		}
		fmt.Printf("protocol: %s: %d states, %d steps, depth %d, %.1f s\n", c.name, result.States, result.Steps, result.Depth, result.Took.Seconds())
		fmt.Fprintf(&rows, "| %s | %d | %d | %d | %d |\n", c.name, result.States, result.Steps, result.Depth, result.Settled)
	}
	golden.Compare(t, file, rows.String())
}

// TestPaths requires that launchpaths.md and disruptionpaths.md have the steps of the models. The simulator compares its traces
// with them. The largest configuration of each model has no steps that the others lack, and is left out.
func TestPaths(t *testing.T) {
	golden.Compare(t, "launchpaths.md", protocol.LaunchPaths(slices.Delete(protocol.LaunchModels(), 2, 3)))
	golden.Compare(t, "disruptionpaths.md", protocol.DisruptionPaths(slices.Delete(protocol.DisruptionModels(), 1, 2)))
}

// modelBug is a bug that is found in the configuration of its number, which has no counterexample without it.
type modelBug struct {
	name          string
	configuration int
}

// launchBugs are bugs of suites/mutation that concern the launch protocol, and two that the model found in the product:
// bind-in-parallel and created-again.
var launchBugs = []modelBug{
	{"token-random", 3}, {"fence-removed", 3}, {"claims-after-launch", 3}, {"strict-limits-are-not", 0}, {"part-of-an-intent", 3},
	{"absence-as-death", 1}, {"slot-order", 3}, {"outbox-read-after-count", 1}, {"given-up-by-uid", 0}, {"unspent-is-refused", 3},
	{"no-list-is-empty", 3}, {"bind-in-parallel", 3}, {"created-again", 3},
}

// disruptionBugs are bugs of suites/mutation that concern disruptions, and four that only the model has: the last ones.
var disruptionBugs = []modelBug{
	{"drained-before-replaced", 0}, {"end-by-the-cache", 0}, {"held-is-begun", 0}, {"written-is-begun", 0}, {"failed-but-not-undone", 0},
	{"confirmed-nodes-not-counted", 3}, {"lease-ignored", 3}, {"deleted-unread", 0}, {"taint-not-looked-for", 0},
}

// TestLaunchBugs explores the model with each bug and compares the broken promises with bugs.md. A bug that breaks none
// is listed as not found.
func TestLaunchBugs(t *testing.T) { findBugs(t, "bugs.md", launches(), launchBugs) }

// TestDisruptionBugs does the same for the model of disruptions.
func TestDisruptionBugs(t *testing.T) {
	findBugs(t, "disruptionbugs.md", disruptions(), disruptionBugs)
}

func findBugs(t *testing.T, file string, configurations []configuration, bugs []modelBug) {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("| bug | configuration | broken promise | actions |\n|---|---|---|---|\n")
	for _, bug := range bugs {
		c := configurations[bug.configuration]
		result := c.explore(bug.name)
		if result.Broken == "" {
			fmt.Fprintf(&rows, "| %s | %s | not found | |\n", bug.name, c.name)
			continue
		}
		t.Logf("%s: %s", bug.name, result.Text())
		fmt.Fprintf(&rows, "| %s | %s | %s | %d |\n", bug.name, c.name, result.Broken, len(result.Trace))
	}
	golden.Compare(t, file, rows.String())
}
