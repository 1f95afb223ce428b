package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// mixedNodes returns an on-demand node with free capacity for one pod, and four spot nodes
// with one pod each.
func mixedNodes(t *testing.T, capacityTypes string) scenario.Scenario {
	t.Helper()
	node := func(name, capacityType string) string {
		return fmt.Sprintf(`{"name": "%s", "nodePool": "pool", "instanceType": "m", "zone": "z1", "capacityType": "%s", "pods": [
			{"metadata": {"name": "pod-%s"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}]}`, name, capacityType, name)
	}
	text := fmt.Sprintf(`{"name": "mixed", "instanceTypes": [{"name": "m", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "5", "memory": "16Gi", "pods": "20"},
		"offerings": [{"zone": "z1", "capacityType": "on-demand", "price": 0.4, "available": true}, {"zone": "z1", "capacityType": "spot", "price": 0.1, "available": true}]}],
		"nodes": [%s, %s, %s, %s, %s], "nodePools": [{"metadata": {"name": "pool"}, "spec": {
		"template": {"spec": {"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [%s]}], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}]}`,
		node("od", "on-demand"), node("s1", "spot"), node("s2", "spot"), node("s3", "spot"), node("s4", "spot"), capacityTypes)
	s, err := scenario.Parse(nil, "mixed.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const both, spotOnly = `"spot", "on-demand"`, `"spot"`

// summarizeRemoval formats a result in one line.
func summarizeRemoval(a simulate.RemovalResult) string {
	came := []string{}
	for _, n := range a.Replacements {
		came = append(came, n.CapacityType)
	}
	moved := 0
	for _, pods := range a.Moved {
		moved += len(pods)
	}
	return fmt.Sprintf("%v: %d nodes became %d, %.1f became %.1f; came %v, %d moved of %d, %d lost", a.Removed, a.Nodes, a.NodesAfter, a.CostBefore, a.CostAfter, came, moved, a.PodsMoved, len(a.Unscheduled))
}

func TestRemoveNodes(t *testing.T) {
	s := mixedNodes(t, both)
	got, err := simulate.RemoveNodes(simulate.SourceFromScenario(&s).Fleet(), []string{"s1", "s2"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[s1 s2]: 5 nodes became 3, 0.8 became 0.6; came [], 2 moved of 2, 0 lost", summarizeRemoval(got)); diff != "" {
		t.Error(diff)
	}
	s = mixedNodes(t, both)
	if _, err := simulate.RemoveNodes(simulate.SourceFromScenario(&s).Fleet(), []string{"s9"}); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "node s9 not found") {
		t.Errorf("a missing node: %v", err)
	}
}

// TestInterruptSpotNodes: the spot offerings of removed nodes are unavailable, and the
// remaining nodes have free capacity for some pods.
func TestInterruptSpotNodes(t *testing.T) {
	for _, c := range []struct {
		name, types string
		part        float64
		want        string
	}{
		{"half", both, 0.5, "[s1 s3]: 5 nodes became 3, 0.8 became 0.6; came [], 2 moved of 2, 0 lost"},
		{"all", both, 1, "[s1 s2 s3 s4]: 5 nodes became 3, 0.8 became 1.2; came [on-demand on-demand], 1 moved of 4, 0 lost"},
		{"all, and the pool allows only spot", spotOnly, 1, "[s1 s2 s3 s4]: 5 nodes became 1, 0.8 became 0.4; came [], 1 moved of 1, 3 lost"},
		{"at least one", both, 0.01, "[s1]: 5 nodes became 4, 0.8 became 0.7; came [], 1 moved of 1, 0 lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mixedNodes(t, c.types)
			got, err := simulate.InterruptSpotNodes(simulate.SourceFromScenario(&s).Fleet(), c.part)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, summarizeRemoval(got)); diff != "" {
				t.Error(diff)
			}
			for pod, why := range got.Unscheduled {
				if !strings.HasPrefix(pod, "default/pod-s") || why == "" {
					t.Errorf("%s is unschedulable because %q", pod, why)
				}
			}
		})
	}
	s := mixedNodes(t, both)
	s.Nodes = s.Nodes[:1]
	if _, err := simulate.InterruptSpotNodes(simulate.SourceFromScenario(&s).Fleet(), 1); fault.KindOf(err) != fault.Missing {
		t.Errorf("without spot nodes: %v", err)
	}
}
