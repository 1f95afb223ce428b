package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// otherPool is the NodePool of the recorded run with spot and x86 types too.
func otherPool(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("internal/demo/manifests/nodepool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, pool, _ := strings.Cut(string(text), "---\n")
	return writeFile(t, "nodepool.yaml", []byte(strings.NewReplacer("- t4g\n", "- t4g\n            - m7i\n", "- arm64\n", "- arm64\n            - amd64\n", "cpu: 20", "cpu: 60", "80Gi", "400Gi").Replace(pool)))
}

// TestExplainWithOtherNodePools replays the decision about a pod that the recorded NodePool rejects, and the
// whole run, with another NodePool.
func TestExplainWithOtherNodePools(t *testing.T) {
	env := recordRun(t, embedded.Options{})
	_, plans := listDocuments[planning.Plan](t, env, planning.PlanKind)
	picky := plans[0].Unplaced[0].Pods[0].Name
	file := otherPool(t)
	for name, args := range map[string][]string{
		"explain-with-pod":    {"pod", picky, "--with", file},
		"explain-with-period": {"nodepool", "default", "--with", file, "--since", "9m"},
		"explain-with-gap":    {"nodepool", "default", "--with", file, "--since", "4h", "--at", "2026-01-01T03:00:00Z"},
		"explain-with-node":   {"node", "x", "--with", file},
	} {
		stdout, stderr, code := joistOnRecords(t, env, append([]string{"explain"}, args...)...)
		compareGolden(t, name, strings.ReplaceAll(fmt.Sprintf("$ joist explain %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), stdout, stderr, code), file, "nodepool.yaml"))
	}
	stdout, stderr, code := joistOnRecords(t, env, "explain", "nodepool", "default", "--with", file, "--since", "9m", "-o", "json")
	if code != cli.ExitNothing {
		t.Fatal(stderr)
	}
	got := parseJSON[simulate.Period](t, stdout)
	// The recorded NodePool rejects two pods and has no spot.
	if got.Same.Unscheduled != 2 || got.With.Unscheduled != 0 || got.With.Dollars >= got.Same.Dollars || len(got.Moments) < 10 || len(got.Gaps) > 0 {
		t.Errorf("%+v, %d moments", got.With, len(got.Moments))
	}
	for _, m := range got.Moments {
		if m.Same.Nodes > m.Recorded.Nodes {
			t.Errorf("at %s the simulation has more nodes (%d) than were recorded (%d)", m.At, m.Same.Nodes, m.Recorded.Nodes)
		}
	}
}
