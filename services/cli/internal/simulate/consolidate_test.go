package simulate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// threeNodes returns large nodes with one pod each, which fit on one node.
func threeNodes(t *testing.T) scenario.Scenario {
	t.Helper()
	node := func(name string) string {
		return fmt.Sprintf(`{"name": "%s", "nodePool": "pool", "instanceType": "large", "zone": "z1", "capacityType": "on-demand", "pods": [
			{"metadata": {"name": "pod-%s"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}]}`, name, name)
	}
	machine := func(name string, cpu int, price float64) string {
		return fmt.Sprintf(`{"name": "%s", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "%d", "memory": "16Gi", "pods": "20"},
			"offerings": [{"zone": "z1", "capacityType": "on-demand", "price": %g, "available": true}]}`, name, cpu, price)
	}
	text := fmt.Sprintf(`{"name": "three", "instanceTypes": [%s, %s], "nodes": [%s, %s, %s], "nodePools": [{"metadata": {"name": "pool"}, "spec": {
		"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "100%%"}]},
		"template": {"spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}]}`,
		machine("large", 8, 0.4), machine("small", 2, 0.1), node("a"), node("b"), node("c"))
	s, err := scenario.Parse(nil, "three.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func consolidateWith(t *testing.T, decide func(planning.Snapshot, instancetypes.InstanceTypes) disruption.Findings) (simulate.ConsolidateResult, error) {
	t.Helper()
	s := threeNodes(t)
	return simulate.Consolidate(simulate.SourceFromScenario(&s).Fleet(), simulate.ConsolidateOptions{Decide: decide, Now: time.Now, Progress: func(int, *scenario.Consolidation) {}})
}

// removeCommand returns a command that removes nodes, with its simulation.
func removeCommand(snapshot planning.Snapshot, stock instancetypes.InstanceTypes, nodes ...int) disruption.Command {
	return disruption.Command{Method: disruption.MultiNode, Nodes: nodes, Result: solver.NewSimulation(snapshot, stock).SimulateRemoval(nodes...)}
}

func TestConsolidateUntilNothingChanges(t *testing.T) {
	passes := 0
	out, err := consolidateWith(t, func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
		passes++
		switch passes {
		case 1:
			return disruption.Findings{Commands: []disruption.Command{removeCommand(snapshot, stock, 1)}}
		case 2:
			return disruption.Findings{Commands: []disruption.Command{removeCommand(snapshot, stock, 0, 1)}}
		}
		return disruption.Findings{}
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range out.Rounds {
		came := []string{}
		for _, n := range r.Replacements {
			came = append(came, n.Name+" "+n.InstanceType)
		}
		got = append(got, fmt.Sprintf("%s of %d: %v became %v; %v, %d moved, %.2f", r.Method, r.Candidates, r.Removed, came, r.Moved, r.PodsMoved, r.CostAfter))
	}
	want := []string{"multi of 3: [b] became []; map[a:[pod-b]], 1 moved, 0.80", "multi of 2: [a c] became [pool-bddc42ddfd small pool-6d4ddb00d1 small]; map[], 3 moved, 0.20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
	pods := 0
	for _, n := range out.FinalNodes {
		pods += len(n.Pods)
	}
	if !out.Complete || out.Nodes != 3 || out.NodesAfter != 2 || out.Pods != 3 || pods != 3 || out.PodsMoved != 4 || out.CostAfter > 0.2001 || out.CostBefore < 1.1999 {
		t.Errorf("result %+v", out)
	}
}

func TestEndlessConsolidationIsABug(t *testing.T) {
	// Each pass replaces nodes at the same price.
	_, err := consolidateWith(t, func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
		c := removeCommand(snapshot, stock, 0, 1, 2)
		for i := range c.Result.Nodes {
			n := &c.Result.Nodes[i]
			for len(n.Offerings) > 0 && n.Offerings[0].InstanceType != "large" {
				n.Offerings = n.Offerings[1:]
			}
		}
		extra := c.Result.Nodes[0]
		extra.Pods = nil
		for len(c.Result.Nodes) < 3 {
			c.Result.Nodes = append(c.Result.Nodes, extra)
		}
		return disruption.Findings{Commands: []disruption.Command{c}}
	})
	if fault.KindOf(err) != fault.Bug || !strings.Contains(err.Error(), "do not converge") {
		t.Errorf("error %v", err)
	}
}

// TestConsolidateRepairs replaces an unhealthy node, also for the same price.
func TestConsolidateRepairs(t *testing.T) {
	s := threeNodes(t)
	source := simulate.SourceFromScenario(&s)
	snapshot := &source.Snapshot
	snapshot.Nodes = snapshot.Nodes[:1]
	snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"large"}}}
	snapshot.Repair = &repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromInt32(1)}
	snapshot.Nodes[0].Unhealthy = &planning.Unhealthy{Conditions: []repair.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Since: snapshot.TakenAt.Add(-time.Hour)}}}
	out, err := simulate.Consolidate(source.Fleet(), simulate.ConsolidateOptions{
		Decide: func(s planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Evaluate(s, stock, disruption.Options{})
		},
		Now: time.Now, Progress: func(int, *scenario.Consolidation) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rounds) != 1 || out.Rounds[0].Method != "repair" || out.CostAfter != out.CostBefore || out.NodesAfter != 1 || !out.Complete {
		t.Errorf("%+v", out)
	}
}

// TestConsolidateTerminatesFirst launches the nodes that a command expects after its nodes are gone, so that no pod
// is lost.
func TestConsolidateTerminatesFirst(t *testing.T) {
	passes := 0
	out, err := consolidateWith(t, func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
		if passes++; passes > 1 {
			return disruption.Findings{}
		}
		c := removeCommand(snapshot, stock, 0, 1, 2)
		c.TerminateFirst, c.Refill, c.Result.Nodes = planning.TerminateFirstNoReservedCapacity, c.Result.Nodes, nil
		return disruption.Findings{Commands: []disruption.Command{c}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Pods != 3 || out.NodesAfter == 0 || out.CostAfter == 0 {
		t.Errorf("%d pods on %d nodes for $%.2f remain", out.Pods, out.NodesAfter, out.CostAfter)
	}
}

// TestConsolidateReplacesStaticNodes replaces a drifted node of a static NodePool, whose replacement is planned without
// pods. Its pod runs on the replacement afterwards.
func TestConsolidateReplacesStaticNodes(t *testing.T) {
	s := threeNodes(t)
	s.NodePools[0].Spec.Replicas = new(int64(3))
	out, err := simulate.Consolidate(driftedFleet(&s), simulate.ConsolidateOptions{
		Now: time.Now, Progress: func(int, *scenario.Consolidation) {},
		Decide: func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Evaluate(snapshot, stock, disruption.Options{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Rounds) == 0 || out.Pods != 3 || out.NodesAfter != 3 || out.PodsMoved != 3 {
		t.Errorf("after %d commands, %d of 3 pods run on %d nodes, and %d have moved", len(out.Rounds), out.Pods, out.NodesAfter, out.PodsMoved)
	}
}

// driftedFleet returns the nodes of a scenario, all of which have drifted.
func driftedFleet(s *scenario.Scenario) *simulate.Fleet {
	source := simulate.SourceFromScenario(s)
	for i := range source.Snapshot.Nodes {
		source.Snapshot.Nodes[i].Drift = &planning.Drift{Reason: "NodePoolDrifted", Since: source.Snapshot.TakenAt.Add(-time.Hour)}
	}
	source.Snapshot.Settings.Gates.StaticCapacity = true
	return source.Fleet()
}

func TestConsolidateFailsOnProblems(t *testing.T) {
	_, err := consolidateWith(t, func(planning.Snapshot, instancetypes.InstanceTypes) disruption.Findings {
		return disruption.Findings{Problems: []error{errors.New("budget 2 of pool cannot be read")}}
	})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "budget 2 of pool") {
		t.Errorf("error %v", err)
	}
}

func TestConsolidateStopsAfterPassesMax(t *testing.T) {
	s := threeNodes(t)
	out, err := simulate.Consolidate(simulate.SourceFromScenario(&s).Fleet(), simulate.ConsolidateOptions{
		Now: time.Now, PassesMax: 1, Progress: func(int, *scenario.Consolidation) {},
		Decide: func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Findings{Commands: []disruption.Command{removeCommand(snapshot, stock, 0)}}
		},
	})
	if err != nil || out.Complete || len(out.Rounds) != 1 || out.NodesAfter != 2 {
		t.Errorf("after one pass: %+v, %v", out, err)
	}
}
