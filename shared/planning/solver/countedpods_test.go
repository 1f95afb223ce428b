package solver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
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

// TestLimitsOfSeveralRemovedNodes removes a node without a NodePool, and one whose capacity is all that the limits of its NodePool allow.
func TestLimitsOfSeveralRemovedNodes(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.NodePools[0].Spec.Limits = limits("cpu", "2")
	snapshot.Nodes = []planning.Node{
		node("a", func(n *planning.Node) { n.NodePool = "" }, running(queuedPod("a", func(*planning.PodSpec) {}))), node("b", running(queuedPod("b", func(*planning.PodSpec) {}))),
	}
	result := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemoval(0, 1)
	if len(result.Nodes) != 1 || len(result.Unplaced) > 0 {
		t.Errorf("%d new nodes, unplaced %+v; want one node for both pods", len(result.Nodes), result.Unplaced)
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

// expectingNode is a NodeClaim for the zones a and b that is not launched yet and expects the pods.
func expectingNode(uids ...string) planning.Node {
	return node("expecting", func(n *planning.Node) {
		n.Launched, n.Registered, n.Initialized, n.Ready = false, false, false, false
		delete(n.Labels, zoneKey)
		n.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: zoneKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{"ap-northeast-2a", "ap-northeast-2b"}}}
		n.ExpectedPods = uids
	})
}

// TestExpectedPodsExcludeFromTheirDomains plans a pod that must not share a zone with a pod that is expected on a NodeClaim for the zones
// a and b, because of the anti-affinity of one of them.
func TestExpectedPodsExcludeFromTheirDomains(t *testing.T) {
	web, guard := requireLabels("app", "web"), avoidingOver(zoneKey, "web", "guard")
	for name, pods := range map[string]struct{ expected, other func(*planning.PodSpec) }{
		"anti-affinity of the other pod":    {web, guard},
		"anti-affinity of the expected pod": {guard, web},
	} {
		t.Run(name, func(t *testing.T) {
			batch := inZones(taking("expected", "500m", pods.expected), taking("other", "1900m", pods.other))
			batch.Snapshot.Nodes = []planning.Node{expectingNode(batch.Pending[0].Pods[0].UID)}
			result := solve(t, batch)
			if onto, zones := placed(result); onto["expecting"] != 1 || perZone(result)["c"] != 1 {
				t.Errorf("pods by node %v, by zone of new nodes %v; want one on the NodeClaim and one in zone c", onto, zones)
			}
		})
	}
}

// TestExpectedPodsKeepTheirDomains plans two pods that are expected on a NodeClaim for the zones a and b. The anti-affinity of running pods may
// exclude them from one of these, and from others.
func TestExpectedPodsKeepTheirDomains(t *testing.T) {
	away := func(key string) func(*planning.PodSpec) { return avoidingOver(key, "web", "guard") }
	for _, tt := range []struct {
		name  string
		guard []planning.Node
		onto  int
	}{
		{"no other pods", nil, 2},
		{"a pod in zone b", []planning.Node{node("n", inZone("b"), running(taking("guard", "100m", away(zoneKey))))}, 0},
		{"a pod in zone c", []planning.Node{node("n", inZone("c"), running(taking("guard", "100m", away(zoneKey))))}, 2},
		{"a pod in a rack", []planning.Node{node("n", inZone("b"), inRack("ap-northeast-2b"), running(taking("guard", "100m", away("rack"))))}, 2},
		{"a pod in a rack, and one in zone b", []planning.Node{
			node("m", inZone("c"), inRack("r"), running(taking("guard-m", "100m", away("rack")))), node("n", inZone("b"), running(taking("guard-n", "100m", away(zoneKey)))),
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(planningtest.NewPods("web", 2, "500m", "64Mi", requireLabels("app", "web")))
			batch.Snapshot.Nodes = append(tt.guard, expectingNode(batch.Pending[0].Pods[0].UID, batch.Pending[0].Pods[1].UID))
			for i := range tt.guard {
				batch.Snapshot.Nodes[i].Used = batch.Snapshot.Nodes[i].Allocatable
			}
			result := solve(t, batch)
			onto, _ := placed(result)
			sum := onto["expecting"] + count(result.Unplaced)
			for _, n := range result.Nodes {
				sum += len(n.Pods)
			}
			if onto["expecting"] != tt.onto || sum != 2 {
				t.Errorf("pods by node %v, want %d on the NodeClaim; the plan has %d pods", onto, tt.onto, sum)
			}
		})
	}
}

// TestExpectedPodsAreCounted plans two pods that exclude each other from a zone. One is expected on a node in zone a, and only that node is
// left, so that the other one finds none.
func TestExpectedPodsAreCounted(t *testing.T) {
	batch := inZones(planningtest.NewPods("w", 2, "100m", "64Mi", apartOver(zoneKey, "w")))
	batch.Snapshot.NodePools = nil
	batch.Snapshot.Nodes = []planning.Node{node("a", func(n *planning.Node) { n.Initialized, n.ExpectedPods = false, []string{batch.Pending[0].Pods[0].UID} })}
	result := solve(t, batch)
	if onto, _ := placed(result); count(result.Unplaced) != 1 || onto["aa"] != 1 {
		t.Errorf("pods by node %v, unplaced %+v, want one pod on a", onto, result.Unplaced)
	}
}

// TestExpectedPodsOfSeveralClaims plans three pods: one is expected on a node that still suits it, one on a node that no longer does, and one
// on none.
func TestExpectedPodsOfSeveralClaims(t *testing.T) {
	batch := inZones(planningtest.NewPods("w", 3, "900m", "64Mi"))
	expecting := func(pod int) func(*planning.Node) {
		return func(n *planning.Node) {
			n.Initialized, n.ExpectedPods = false, []string{batch.Pending[0].Pods[pod].UID}
		}
	}
	batch.Snapshot.Nodes = []planning.Node{node("fine", expecting(0)), node("tainted", expecting(1), func(n *planning.Node) {
		n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	})}
	result := solve(t, batch)
	if onto, _ := placed(result); len(result.Unplaced) > 0 || onto["finefine"] != 2 || len(result.Nodes) != 1 || len(result.Nodes[0].Pods) != 1 {
		t.Errorf("pods by node %v, %d new nodes, unplaced %+v; want two pods on the fine node, and one on a new node", onto, len(result.Nodes), result.Unplaced)
	}
}
