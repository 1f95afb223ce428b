package solver_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// inRack puts a node into a rack, a label that no instance type has.
func inRack(name string) func(*planning.Node) {
	return func(n *planning.Node) { n.Labels["rack"] = name }
}

// TestPodsOfSeveralRemovedNodesAreNotCounted removes a node without the label of an anti-affinity, and one with a pod that has it.
func TestPodsOfSeveralRemovedNodesAreNotCounted(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.Nodes = []planning.Node{node("unlabelled"), node("old", inRack("r1"), running(queuedPod("a", apartOver("rack", "a")))), node("other", inRack("r1"))}
	closed(&snapshot)
	result := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemoval(0, 1)
	if len(result.Nominations) != 1 || result.Nominations[0].Node != "other" {
		t.Errorf("got %+v, unplaced %+v, want the pod on the other node of its rack", result.Nominations, result.Unplaced)
	}
}

// TestExpectedPodsCountOnce plans three pods that are spread over two zones. One is expected on a NodeClaim in zone a, and zone b has room
// for one, so that the third goes to zone a.
func TestExpectedPodsCountOnce(t *testing.T) {
	batch := inZones(planningtest.NewPods("w", 3, "800m", "64Mi", requireLabels("app", "web"), spreadIn(zoneKey, "web")))
	batch.Snapshot.NodePools = nil
	batch.Snapshot.Nodes = []planning.Node{
		node("a", func(n *planning.Node) { n.Initialized, n.ExpectedPods = false, []string{batch.Pending[0].Pods[0].UID} }), cores("b", "1", inZone("b")),
	}
	result := solve(t, batch)
	if onto, _ := placed(result); len(result.Unplaced) > 0 || onto["aa"] != 2 {
		t.Errorf("pods by node %v, unplaced %+v, want two pods on a", onto, result.Unplaced)
	}
}
