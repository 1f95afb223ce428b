package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli"
)

// TestExplainsThresholds: explain names the threshold that keeps a node, with its values.
func TestExplainsThresholds(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	for annotation, want := range map[string]string{
		`"joist.sh/consolidation-evictions-per-hour": "0"`: "node node-1 is kept (evictions-per-hour): 1 pods of default/old would move after 0 within the hour; joist.sh/consolidation-evictions-per-hour allows 0 of its 1\n",
		`"joist.sh/consolidation-cooldown": "soon"`:        `node node-1 is kept (policy-unreadable): the annotations of NodePool default cannot be read: annotation joist.sh/consolidation-cooldown is "soon": use a duration`,
	} {
		manifest := strings.Replace(string(text), `"name": "default"`, `"name": "default", "annotations": {`+annotation+`}`, 1)
		manifest = strings.Replace(manifest, `"spec": {"template": {"spec": {
    "requirements"`, `"spec": {"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "100%"}]}, "template": {"spec": {
    "requirements"`, 1)
		stdout, stderr, code := runJoist(t, manifest, nil, "explain", "node/node-1", "--scenario", "-")
		if code != cli.ExitNothing || !strings.HasPrefix(stdout, want) {
			t.Errorf("exit code %d, printed %q, want %q, stderr:\n%s", code, stdout, want, stderr)
		}
	}
}
