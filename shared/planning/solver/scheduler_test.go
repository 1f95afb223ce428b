package solver_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// cores returns a node of 4 cores, of which the given number is free.
func cores(name, free string, edits ...func(*planning.Node)) planning.Node {
	return node(name, append([]func(*planning.Node){func(n *planning.Node) {
		used := resource.MustParse("4")
		used.Sub(resource.MustParse(free))
		n.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("20"),
		}
		n.Used = corev1.ResourceList{corev1.ResourceCPU: used}
	}}, edits...)...)
}

// leaving returns the removed node with its pods.
func leaving(pods ...planning.PodClass) planning.Node { return node("old", running(pods...)) }

func taking(name, cpu string, edits ...func(*planning.PodSpec)) planning.PodClass {
	return planningtest.NewPods(name, 1, cpu, "100Mi", edits...)
}

// remembering makes the given memory of 16 GiB free.
func remembering(free string) func(*planning.Node) {
	return func(n *planning.Node) {
		used := resource.MustParse("16Gi")
		used.Sub(resource.MustParse(free))
		n.Used[corev1.ResourceMemory] = used
	}
}

func occupied(pod planning.PodClass) func(*planning.Node) {
	return func(n *planning.Node) { n.Pods = append(n.Pods, pod) }
}

func zoneOf(letter string) func(*planning.PodSpec) {
	return selecting(corev1.LabelTopologyZone, "ap-northeast-2"+letter)
}

// TestStranded removes the first node while nothing can be launched; the plan has a place for every
// pod.
func TestStranded(t *testing.T) {
	tainted := func(n *planning.Node) {
		n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerant := func(s *planning.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	ported := func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{Port: 80}} }
	labelled := func(s *planning.PodSpec) { s.Labels = map[string]string{"app": "a"} }
	porting := func(n *planning.Node) { n.HostPorts = []planning.HostPort{{Port: 80}} }
	for _, tt := range []struct {
		name  string
		nodes []planning.Node
		want  []string
	}{
		{"every order of the pods fits", []planning.Node{
			leaving(taking("large", "1500m"), taking("small", "1")), cores("x", "2"), cores("y", "2"),
		}, nil},
		{"a large pod uses the capacity for two small ones", []planning.Node{
			leaving(taking("large", "1500m"), planningtest.NewPods("small", 2, "1", "100Mi")), cores("x", "1500m"), cores("y", "2"),
		}, []string{"small-1"}},
		{"with interleaved kinds, the second large pod is too late", []planning.Node{
			leaving(planningtest.NewPods("large", 2, "2", "100Mi"), taking("small", "1")), cores("x", "3"), cores("y", "2"),
		}, []string{"large-1"}},
		{"a third node has capacity for the remaining pod", []planning.Node{
			leaving(taking("large", "1500m"), planningtest.NewPods("small", 2, "1", "100Mi")), cores("x", "1500m"), cores("y", "2"), cores("z", "1"),
		}, nil},
		{"the third node has an untolerated taint", []planning.Node{
			leaving(taking("large", "1500m"), planningtest.NewPods("small", 2, "1", "100Mi")), cores("x", "1500m"), cores("y", "2"), cores("z", "1", tainted),
		}, []string{"small-1"}},
		{"a tolerating pod uses the tainted node", []planning.Node{
			leaving(taking("large", "1500m", tolerant), taking("small", "1")), cores("x", "1"), cores("y", "2", tainted),
		}, nil},
		{"an unconstrained pod uses the capacity of a constrained one", []planning.Node{
			leaving(taking("any", "1500m"), taking("bound", "1", zoneOf("b"))), cores("x", "1500m"), cores("y", "2", inZone("b")),
		}, []string{"bound-0"}},
		{"a pod with anti-affinity avoids running pods", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", apart("a"))), cores("x", "1500m", occupied(taking("c", "1", apart("a")))), cores("y", "2"),
		}, []string{"a-0"}},
		{"a pod avoids running pods with anti-affinity to it", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", labelled)), cores("x", "1500m", occupied(taking("c", "1", apart("a")))), cores("y", "2"),
		}, []string{"a-0"}},
		{"rescheduled pods with anti-affinity to each other", []planning.Node{
			leaving(taking("large", "1600m", tolerant), taking("a", "500m", apart("a")), taking("b", "500m", apart("a"))),
			cores("w", "1600m", tainted), cores("x", "1"), cores("y", "2"),
		}, []string{"b-0"}},
		{"two rescheduled pods with one host port", []planning.Node{
			leaving(taking("large", "1600m", tolerant), taking("a", "500m", ported), taking("b", "500m", ported)),
			cores("w", "1600m", tainted), cores("x", "1"), cores("y", "2"),
		}, []string{"b-0"}},
		{"a host port in use", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", ported)), cores("x", "1500m", porting), cores("y", "2"),
		}, []string{"a-0"}},
		{"a spread pod stays in its planned zone", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", spreadIn(corev1.LabelTopologyZone, "a"))),
			cores("x", "1500m", inZone("b"), occupied(taking("c", "1", spreadIn(corev1.LabelTopologyZone, "a")))), cores("y", "2"),
		}, []string{"a-0"}},
		{"a pod takes the node with the most free cpu and memory", []planning.Node{
			leaving(taking("any", "1"), taking("bound", "1", zoneOf("b"))), cores("x", "1", remembering("4Gi")), cores("y", "1500m", inZone("b"), remembering("6Gi")),
		}, []string{"bound-0"}},
		{"a pod with affinity to a pod of its node stays there", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "c")}))),
			cores("x", "1500m"), cores("y", "2", occupied(taking("c", "1", requireLabels("app", "c")))),
		}, []string{"a-0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			snapshot.Nodes = tt.nodes
			closed(&snapshot)
			simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
			plan := simulation.SimulateRemoval(0)
			if len(plan.Unplaced) > 0 {
				t.Fatalf("the plan has unplaced pods:\n%s", describeResult(plan))
			}
			var got []string
			for _, pod := range simulation.FindStrandedPods(plan, 0) {
				if got = append(got, pod.Name); pod.Node != "old" {
					t.Errorf("stranded pod %s has node %s, want old", pod.Name, pod.Node)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStrandedCountsCommits has room for two pods where kube-scheduler puts one pod of each
// removed node.
func TestStrandedCountsCommits(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.Nodes = []planning.Node{
		node("a", running(taking("a", "1500m"))), node("b", running(planningtest.NewPods("b", 2, "1", "100Mi"))), cores("x", "1500m"), cores("y", "2"),
	}
	closed(&snapshot)
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	first, second := simulation.SimulateRemoval(0), simulation.SimulateRemoval(1)
	if n := len(simulation.FindStrandedPods(first, 0)) + len(simulation.FindStrandedPods(second, 1)); n > 0 {
		t.Fatalf("each removal alone strands %d pods", n)
	}
	simulation.Commit(first, 0)
	second = simulation.SimulateRemoval(1)
	if len(second.Unplaced) > 0 {
		t.Fatalf("the plan has unplaced pods:\n%s", describeResult(second))
	}
	if left := simulation.FindStrandedPods(second, 1); len(left) != 1 || left[0].Node != "b" {
		t.Errorf("%d stranded pods: %+v", len(left), left)
	}
}

// TestStrandedOnNewNodes checks that a new node counts as its cheapest offering.
func TestStrandedOnNewNodes(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.Nodes = []planning.Node{node("old", running(planningtest.NewPods("a", 2, "500m", "1Gi")))}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	plan := simulation.SimulateRemoval(0)
	if left := simulation.FindStrandedPods(plan, 0); len(plan.Nodes) == 0 || len(left) > 0 {
		t.Fatalf("%d stranded pods with %d new nodes", len(left), len(plan.Nodes))
	}
	plan.Nodes[0].Offerings[0].InstanceType = "t4g.small" // It has 2 GiB.
	if left := simulation.FindStrandedPods(plan, 0); len(left) != 1 {
		t.Errorf("%d stranded pods with a node for one pod", len(left))
	}
	plan.Nodes = nil
	if left := simulation.FindStrandedPods(plan, 0); len(left) != 2 {
		t.Errorf("%d stranded pods without any node", len(left))
	}
}

// TestStrandedOnNewNodesOfTheOnlyType moves a pod to a new node of a pool with one instance type.
func TestStrandedOnNewNodesOfTheOnlyType(t *testing.T) {
	batch := spending(0, "")
	batch.Snapshot.Nodes = []planning.Node{node("old", running(planningtest.NewPods("a", 1, "1500m", "1Gi")))}
	simulation := solver.NewSimulation(batch.Snapshot, market())
	plan := simulation.SimulateRemoval(0)
	if left := simulation.FindStrandedPods(plan, 0); len(plan.Nodes) != 1 || len(left) > 0 {
		t.Errorf("%d stranded pods with %d new nodes", len(left), len(plan.Nodes))
	}
}

// TestStrandedCallsAreIndependent compares many calls on one simulation with the same calls on new
// simulations.
func TestStrandedCallsAreIndependent(t *testing.T) {
	cat := planningtest.NewCatalogue()
	var some, none int
	rapid.Check(t, func(t *rapid.T) {
		snapshot := genCluster(t)
		stock := instancetypes.New(snapshot, cat)
		asked := solver.NewSimulation(snapshot, stock)
		type removal struct {
			result planning.Result
			nodes  []int
		}
		var taken []removal
		for range rapid.IntRange(1, 6).Draw(t, "questions") {
			nodes := rapid.SliceOfNDistinct(rapid.IntRange(0, len(snapshot.Nodes)-1), 1, 3, rapid.ID).Draw(t, "nodes")
			result := asked.SimulateRemoval(nodes...)
			fresh := solver.NewSimulation(snapshot, stock)
			for _, one := range taken {
				fresh.Commit(one.result, one.nodes...)
			}
			got, want := asked.FindStrandedPods(result, nodes...), fresh.FindStrandedPods(result, nodes...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("removal of %v after %d commits:\n%s", nodes, len(taken), diff)
			}
			if some, none = some+min(1, len(got)), none+1-min(1, len(got)); rapid.Bool().Draw(t, "take") {
				asked.Commit(result, nodes...)
				taken = append(taken, removal{result, slices.Clone(nodes)})
			}
		}
	})
	t.Logf("%d removals strand pods, %d strand none", some, none)
	if some == 0 || none == 0 {
		t.Error("the generated clusters cover too few cases")
	}
}
