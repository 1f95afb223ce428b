package cli_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// tiny has only one possible plan, so that the expected outputs do not depend on the planner.
const tiny = "testdata/scenario/tiny.json"

func TestScenarioAsJSON(t *testing.T) {
	stdout, stderr, code := runJoist(t, "", nil, "plan", "--scenario", tiny, "-o", "json")
	if code != cli.ExitNothing || stderr != "" {
		t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
	}
	var got scenario.Outcome
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	effort := got.Summary.Effort
	if effort.SolveMallocs == 0 || effort.SolveAllocMB == 0 || effort.PeakRSSMB == 0 || got.Summary.TimedOut {
		t.Errorf("effort: %+v", effort)
	}
	if why := got.Unscheduled["huge"]; !strings.Contains(why, "NodePool default: resources") {
		t.Errorf("the reason for pod huge is %q", why)
	}
	if got.Planner != "joist v1.2.3" || got.Pods != 4 || got.InstanceTypes != 1 || len(got.Unscheduled) != 1 {
		t.Errorf("outcome: %+v", got)
	}
	if diff := cmp.Diff(map[string][]string{"node-1": {"small"}}, got.ExistingPods); diff != "" {
		t.Error(diff)
	}
	if len(got.NewNodes) != 2 {
		t.Fatalf("%d new nodes:\n%s", len(got.NewNodes), stdout)
	}
	for _, n := range got.NewNodes {
		if n.InstanceType != "m7g.large" || n.Zone != "eu-west-1a" || n.Price != 0.0911 || n.Options != 1 || len(n.Pods) != 1 {
			t.Errorf("node: %+v", n)
		}
	}
	if s := got.Summary; s.NewNodes != 2 || s.Scheduled != 3 || s.Unscheduled != 1 || s.DollarsPerHour != 0.1822 {
		t.Errorf("summary: %+v", s)
	}
}

// TestScenarioWithTypesElsewhere: an absolute path of the file of instance types works from
// any directory.
func TestScenarioWithTypesElsewhere(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(types, document["instanceTypes"], 0o600); err != nil {
		t.Fatal(err)
	}
	delete(document, "instanceTypes")
	document["instanceTypesFile"] = json.RawMessage(strconv.Quote(types))
	whole, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "tiny.json")
	if err := os.WriteFile(elsewhere, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, stdin := range map[string]string{elsewhere: "", "-": string(whole)} {
		if stdout, stderr, code := runJoist(t, stdin, nil, "plan", "--scenario", name, "-o", "json"); code != cli.ExitNothing || !strings.Contains(stdout, `"instanceTypes": 1,`) {
			t.Errorf("--scenario %s: exit code %d, stderr:\n%s", name, code, stderr)
		}
	}
}

func TestScenarioAsATable(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, code := runJoist(t, strings.Replace(string(text), `"tiny"`, `"tiny", "color": "red"`, 1), nil, "plan", "--scenario", "-")
	for _, want := range []string{
		"NODES", "m7g.large", "tiny: 2 nodes to launch for 2 pods, $0.1822 per hour", "1 pod on existing nodes; 1 pod unschedulable",
		"planned in ", "1 pod unschedulable: huge",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout)
		}
	}
	if code != cli.ExitNothing {
		t.Errorf("exit code %d", code)
	}
}

func TestScenarioErrors(t *testing.T) {
	for _, tt := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"both", "", []string{"-f", "x.yaml", "--scenario", tiny}, "joist: --scenario and -f exclude each other\nTry: --scenario or -f\n"},
		{"no file", "", []string{"--scenario", "testdata/none.json"}, "joist: reading testdata/none.json: no such file or directory\nTry: check the path\n"},
		{"a folder", "", []string{"--scenario", "testdata"}, "joist: reading testdata: is a directory\nTry: check the path\n"},
		{"nonsense", "{]", []string{"--scenario", "-"}, "joist: reading the scenario: stdin:1:2: invalid JSON: invalid character ']' looking for beginning of object key string\nTry: give a scenario in JSON; -f reads manifests, and --snapshot a snapshot of a cluster\n"},
		{"a note", `{"instanceTypes": [], "nodePools": [], "color": 1}`, []string{"--scenario", "-"},
			"note: stdin: unknown field \"color\" is ignored\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, _ := runJoist(t, tt.stdin, nil, append([]string{"plan"}, tt.args...)...)
			if diff := cmp.Diff(tt.want, stderr); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConsolidationAsJSON(t *testing.T) {
	stdout, stderr, code := runJoist(t, "", nil, "consolidate", "--scenario", tiny, "-o", "json")
	var got scenario.Consolidation
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != cli.ExitNothing {
		t.Fatalf("%v, exit code %d, stderr:\n%s", err, code, stderr)
	}
	if got.Planner != "joist v1.2.3" || !got.Complete || got.Nodes != 3 || got.Pods != 4 || math.Abs(got.CostBefore-3*0.0911) > 1e-9 || got.PeakRSSMB == 0 {
		t.Errorf("consolidation: %+v", got)
	}
	want := scenario.FinalNode{
		Name: "node-1", NodePool: "default", InstanceType: "m7g.large", Zone: "eu-west-1a", CapacityType: "on-demand", Pods: []string{"default/old", "default/small"},
	}
	if diff := cmp.Diff(want, got.FinalNodes[0]); diff != "" {
		t.Errorf("the node must be kept, with its pending pod: %s", diff)
	}
	if !strings.Contains(stderr, "note: operations in progress are simulated as done: 0 nodes being removed, 4 pending pods, 2 new nodes for pending pods\n") {
		t.Errorf("no note about the pending pods:\n%s", stderr)
	}
}

func TestConsolidationAsATable(t *testing.T) {
	stdout, _, code := runJoist(t, "", nil, "consolidate", "--scenario", tiny)
	want := "tiny: 3 nodes with 4 pods at $0.2733 per hour became 3 nodes at $0.2733 per hour; 0 pods moved by 0 commands\n"
	if code != cli.ExitNothing || !strings.Contains(stdout, want) || !strings.Contains(stdout, "decided in ") {
		t.Errorf("exit code %d, the table lacks %q:\n%s", code, want, stdout)
	}
}

func TestExplainsANodeThatIsKept(t *testing.T) {
	stdout, stderr, code := runJoist(t, "", nil, "explain", "node/node-1", "--scenario", tiny, "-o", "json")
	if code != cli.ExitNothing {
		t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
	}
	got := parseJSON[struct{ Node, Action, Rule, Detail, Change string }](t, stdout)
	// No cheaper instance type can replace it.
	if got.Node != "node-1" || got.Action != "keep" || got.Rule == "" || got.Detail == "" || got.Change == "" {
		t.Errorf("explained: %+v", got)
	}
	text, _, _ := runJoist(t, "", nil, "explain", "node/node-1", "--scenario", tiny)
	if want := "node node-1 is kept (" + got.Rule + "): " + got.Detail + "\nTo change that: " + got.Change + ".\n"; !strings.HasPrefix(text, want) {
		t.Errorf("printed %q, want %q", text, want)
	}
}

func TestExplainsANodeThatIsRemoved(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	// The added node is empty.
	empty := strings.Replace(string(text), `"nodes": [`, `"nodes": [{"name": "idle", "nodePool": "default", "instanceType": "m7g.large", "zone": "eu-west-1b", "capacityType": "on-demand"}, `, 1)
	empty = strings.Replace(empty, `"spec": {"template": {"spec": {
    "requirements"`, `"spec": {"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]}, "template": {"spec": {
    "requirements"`, 1)
	empty = strings.Replace(empty, `"podGroups": [`, `"unused": [`, 1)
	stdout, stderr, code := runJoist(t, empty, nil, "explain", "node/idle", "--scenario", "-")
	if code != cli.ExitNothing || !strings.HasPrefix(stdout, "node idle would be removed by Emptiness, with 0 others: ") {
		t.Errorf("exit code %d, printed %q, stderr:\n%s", code, stdout, stderr)
	}
}
