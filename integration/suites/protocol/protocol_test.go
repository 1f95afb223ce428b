package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/suites/protocol"
)

// model is a configuration of a model.
type model interface {
	fmt.Stringer
	Explore(bug string, paths protocol.Paths) protocol.Exploration
}

func listModels[M model](models []M) (out []model) {
	for _, m := range models {
		out = append(out, m)
	}
	return out
}

var launches, disruptions = listModels(protocol.LaunchModels()), listModels(protocol.DisruptionModels())

// TestLaunches visits every state of the launch protocol, and compares their number with states.md and their steps with
// launchpaths.md, with which the simulator compares its traces.
func TestLaunches(t *testing.T) { exploreAll(t, "states.md", "launchpaths.md", launches) }

// TestDisruptions does the same for the disruption of nodes.
func TestDisruptions(t *testing.T) {
	exploreAll(t, "disruptionstates.md", "disruptionpaths.md", disruptions)
}

func exploreAll(t *testing.T, statesFile, pathsFile string, models []model) {
	t.Helper()
	paths := protocol.Paths{}
	var rows strings.Builder
	rows.WriteString("| configuration | states | steps | depth | settled states |\n|---|---|---|---|---|\n")
	for _, m := range models {
		result := m.Explore("", paths)
		if result.Broken != "" {
			t.Fatalf("%s: %s", m, result.Text())
		}
		fmt.Printf("protocol: %s: %d states, %d steps, depth %d, %.1f s\n", m, result.States, result.Steps, result.Depth, result.Took.Seconds())
		fmt.Fprintf(&rows, "| %s | %d | %d | %d | %d |\n", m, result.States, result.Steps, result.Depth, result.Settled)
	}
	golden.Compare(t, statesFile, rows.String())
	golden.Compare(t, pathsFile, paths.String())
}

// modelBug is a bug that is found in the configuration of its number, which has no counterexample without it.
type modelBug struct {
	name          string
	configuration int
}

// launchBugs are bugs of suites/mutation that concern the launch protocol, two that the model found in the product,
// bind-in-parallel and created-again, and five of counts with a cache that lags: the last ones.
var launchBugs = []modelBug{
	{"token-random", 3}, {"fence-removed", 3}, {"claims-after-launch", 3}, {"strict-limits-are-not", 0}, {"part-of-an-intent", 3},
	{"absence-as-death", 1}, {"slot-order", 3}, {"outbox-read-after-count", 1}, {"given-up-by-uid", 0}, {"unspent-is-refused", 3},
	{"no-list-is-empty", 3}, {"bind-in-parallel", 3}, {"created-again", 3},
	{"new-leader-counts-its-cache", 0}, {"other-plans-not-counted", 0}, {"created-not-counted", 0},
	{"abandoned-not-counted", 4}, {"abandoned-beyond-limits", 4},
}

// disruptionBugs are bugs of suites/mutation that concern disruptions, and bugs that only the model has: the last ones.
var disruptionBugs = []modelBug{
	{"drained-before-replaced", 0}, {"end-by-the-cache", 0}, {"held-is-begun", 0}, {"written-is-begun", 0}, {"failed-but-not-undone", 0},
	{"confirmed-nodes-not-counted", 5}, {"confirmed-without-reservation", 5}, {"reservations-not-counted", 5}, {"reboot-requested-late", 4}, {"failed-reboot-deleted-unread", 4}, {"deleted-unread", 0}, {"taint-not-looked-for", 2},
}

// TestLaunchBugs explores the model with each bug and compares the broken promises with bugs.md. A bug that breaks none
// is listed as not found.
func TestLaunchBugs(t *testing.T) { findBugs(t, "bugs.md", launches, launchBugs) }

// TestDisruptionBugs does the same for the model of disruptions.
func TestDisruptionBugs(t *testing.T) { findBugs(t, "disruptionbugs.md", disruptions, disruptionBugs) }

func findBugs(t *testing.T, file string, models []model, bugs []modelBug) {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("| bug | configuration | broken promise | actions |\n|---|---|---|---|\n")
	for _, bug := range bugs {
		m := models[bug.configuration]
		result := m.Explore(bug.name, nil)
		if result.Broken == "" {
			fmt.Fprintf(&rows, "| %s | %s | not found | |\n", bug.name, m)
			continue
		}
		t.Logf("%s: %s", bug.name, result.Text())
		fmt.Fprintf(&rows, "| %s | %s | %s | %d |\n", bug.name, m, result.Broken, len(result.Trace))
	}
	golden.Compare(t, file, rows.String())
}
