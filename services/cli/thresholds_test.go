package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli"
)

// Why tells by which threshold a node stays, with the figures.
func TestWhyAThresholdKeepsANode(t *testing.T) {
	text, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	for annotation, want := range map[string]string{
		`"joist.sh/consolidation-evictions-per-hour": "0"`: "node node-1 is kept (evictions-per-hour): 1 pods of default/old would move after 0 within the hour; joist.sh/consolidation-evictions-per-hour allows 0 of its 1\n",
		`"joist.sh/consolidation-cooldown": "soon"`:        `node node-1 is kept (policy-unreadable): the annotations of NodePool default cannot be read: annotation joist.sh/consolidation-cooldown is "soon": write a duration`,
	} {
		asking := strings.Replace(string(text), `"name": "default"`, `"name": "default", "annotations": {`+annotation+`}`, 1)
		asking = strings.Replace(asking, `"spec": {"template": {"spec": {
    "requirements"`, `"spec": {"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "100%"}]}, "template": {"spec": {
    "requirements"`, 1)
		stdout, stderr, code := joist(t, asking, nil, "why", "node/node-1", "--scenario", "-")
		if code != cli.ExitNothing || !strings.HasPrefix(stdout, want) {
			t.Errorf("exit code %d, said %q, want %q, stderr:\n%s", code, stdout, want, stderr)
		}
	}
}
