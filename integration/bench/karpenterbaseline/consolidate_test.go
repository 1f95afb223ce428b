package karpenterbaseline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
)

// running returns a node of pool a with pods.
func running(name, machine, pods string) string {
	return fmt.Sprintf(`{"name": "%s", "nodePool": "a", "instanceType": "%s", "zone": "z1", "capacityType": "on-demand", "pods": [%s]}`, name, machine, pods)
}

// TestKnownConsolidations checks known decisions of upstream's consolidation, to show that it is
// called as in production. In the second case the pool's limits equal the size of its
// nodes: removed nodes do not count against them.
func TestKnownConsolidations(t *testing.T) {
	const disrupts = `"limits": {"cpu": "16", "nodes": "2"}, "disruption": {"consolidateAfter": "0s", "consolidationPolicy": "%s", "budgets": [{"nodes": "%s"}]},`
	for _, c := range []struct{ name, policy, budget, nodes, want string }{
		{"an empty node is removed", "WhenEmpty", "100%", running("one", "small", ""), "empty [one] []; 0 nodes $0"},
		{"two nodes are replaced by one", "WhenEmptyOrUnderutilized", "100%",
			running("one", "large", pod("p", "1", "")) + "," + running("two", "large", pod("q", "500m", "")),
			"multi [one two] [small]; 1 nodes $0.05"},
		{"a node is replaced by a smaller one", "WhenEmptyOrUnderutilized", "100%", running("one", "large", pod("p", "1", "")), "single [one] [small]; 1 nodes $0.05"},
		{"a budget of zero", "WhenEmptyOrUnderutilized", "0", running("one", "large", pod("p", "1", "")), "1 nodes $0.4"},
		{"policy WhenEmpty", "WhenEmpty", "100%", running("one", "large", pod("p", "1", "")), "1 nodes $0.4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := consolidated(t, pool("a", fmt.Sprintf(disrupts, c.policy, c.budget)), c.nodes, time.Minute)
			var got strings.Builder
			for _, round := range r.Rounds {
				var came []string
				for _, n := range round.Replacements {
					came = append(came, n.InstanceType)
				}
				fmt.Fprintf(&got, "%s %v %v; ", round.Method, round.Removed, came)
			}
			fmt.Fprintf(&got, "%d nodes $%v", r.NodesAfter, r.CostAfter)
			if got.String() != c.want && got.String() != strings.Replace(c.want, "one two", "two one", 1) {
				t.Errorf("got %q, want %q", got.String(), c.want)
			}
			if !r.Complete {
				t.Error("the consolidation is incomplete")
			}
		})
	}
}

// A consolidation that times out is incomplete, and its result records that.
func TestConsolidationTimesOut(t *testing.T) {
	const disrupts = `"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]},`
	if r := consolidated(t, pool("a", disrupts), running("one", "small", ""), time.Nanosecond); r.Complete || r.NodesAfter != 1 {
		t.Errorf("got complete %v with %d nodes, want an incomplete result with one node", r.Complete, r.NodesAfter)
	}
}

func consolidated(t *testing.T, pool, nodes string, limit time.Duration) *karpenterbaseline.Consolidation {
	t.Helper()
	s, err := karpenterbaseline.Parse(fmt.Appendf(nil, `{"name": "s", "instanceTypes": %s, "nodePools": [%s], "nodes": [%s]}`, machines, pool, nodes), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := karpenterbaseline.Consolidate(t.Context(), s, karpenterbaseline.Options{Concurrency: 1, Timeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
