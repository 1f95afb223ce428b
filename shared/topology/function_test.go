package topology_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

func TestFunctions(t *testing.T) {
	own := of(t, topology.Cluster{Name: "prod", Prefix: "p"})
	if own.HasSharedFunctions() || own.FunctionName("planner") != "p-joist-planner" {
		t.Errorf("%t, %s", own.HasSharedFunctions(), own.FunctionName("planner"))
	}
	shared := of(t, topology.Cluster{Name: "prod", Functions: strings.Repeat("f", 45)})
	if !shared.HasSharedFunctions() || len(shared.FunctionName("interruption")) != 64 {
		t.Errorf("%t, %s", shared.HasSharedFunctions(), shared.FunctionName("interruption"))
	}
	for functions, says := range map[string]string{
		strings.Repeat("f", 46): "at most 45", "all functions": "letters, digits", "prod": "a name that is not a cluster's", "Prod": "a name that is not a cluster's",
	} {
		_, err := topology.NewPlan(topology.Cluster{Name: "prod", Functions: functions})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.FindHint(err), says) {
			t.Errorf("%s: %v", functions, err)
		}
	}
}

// IAM allows 64 characters for a session name, and the role trusts the same name.
func TestSession(t *testing.T) {
	for cluster, want := range map[string]string{"prod": "planner@prod", strings.Repeat("c", 100): "planner@" + strings.Repeat("c", 56)} {
		if got := topology.RoleSessionName("planner", cluster); got != want || len(got) > 64 {
			t.Errorf("%s: %s", cluster, got)
		}
	}
}
