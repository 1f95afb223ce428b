package solver_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{"a pod with anti-affinity to other pods avoids these", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", avoidingOver(corev1.LabelHostname, "c", "a"))), cores("x", "1500m", occupied(taking("c", "1", requireLabels("app", "c")))), cores("y", "2"),
		}, []string{"a-0"}},
		{"a running pod with an anti-affinity that cannot be read", []planning.Node{
			leaving(taking("a", "1", apart("a"))), cores("x", "1", occupied(taking("c", "1", averse(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}},
			}})))),
		}, nil},
		{"a pod takes the node whose scarcer resource is freer, although the other is less free there", []planning.Node{
			leaving(taking("any", "2"), taking("bound", "1900m", zoneOf("b"))), cores("x", "4", remembering("14Gi")), cores("y", "3800m", inZone("b"), remembering("7300Mi")),
		}, nil},
		{"a pod with anti-affinity ignores terminating pods", []planning.Node{
			leaving(taking("a", "1", apart("a"))), cores("x", "1", func(n *planning.Node) {
				c := taking("c", "1", apart("a"))
				c.Pods[0].Terminating = true
				n.Pods, n.DaemonPods = []planning.PodClass{c}, []planning.PodClass{c}
			}),
		}, nil},
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
		{"a spread pod stays in its planned rack, whose name is empty", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", spreadIn("rack", "a"))), cores("x", "1500m"), cores("y", "2", inRack("")),
		}, []string{"a-0"}},
		{"a pod whose spread is a preference leaves its planned zone", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", requireLabels("app", "a"), spreads(corev1.LabelTopologyZone, 1, anyway))),
			cores("x", "1500m", inZone("b"), occupied(taking("c", "1", requireLabels("app", "a")))), cores("y", "2"),
		}, nil},
		{"a pod that is spread over nodes leaves its planned node", []planning.Node{
			leaving(taking("large", "1500m"), taking("a", "1", spreadIn(corev1.LabelHostname, "a"))), cores("x", "1500m"), cores("y", "2"),
		}, nil},
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
	for _, nodes := range [][]int{{1}, {0, 1}} { // The first node is removed already.
		if left := simulation.FindStrandedPods(second, nodes...); len(left) != 1 || left[0].Node != "b" {
			t.Errorf("nodes %v: %d stranded pods: %+v", nodes, len(left), left)
		}
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

// TestStrandedReadsEachPlan asks about a plan whose new node is in another zone than the pod may use, and then about a valid plan for
// the same pod.
func TestStrandedReadsEachPlan(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.Nodes = []planning.Node{node("old", running(taking("a", "500m", zoneOf("a"))))}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	plan := simulation.SimulateRemoval(0)
	wrong := plan
	wrong.Nodes = slices.Clone(plan.Nodes)
	wrong.Nodes[0].Requirements = plan.Nodes[0].Requirements.Clone()
	wrong.Nodes[0].Requirements[zoneKey] = planning.In("ap-northeast-2b")
	if first, second := simulation.FindStrandedPods(wrong, 0), simulation.FindStrandedPods(plan, 0); len(first) != 1 || len(second) != 0 {
		t.Errorf("%d stranded pods in the other zone, and %d in the right one; want 1 and 0", len(first), len(second))
	}
}

// TestStrandedKnowsTaintsOfNewNodes moves a pod to a new node of a pool with a taint. Another pod, which does not tolerate it, finds no node.
func TestStrandedKnowsTaintsOfNewNodes(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.NodePools[0].Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}}
	tolerant := func(s *planning.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	snapshot.Nodes = []planning.Node{node("old", running(taking("a", "500m", tolerant), taking("b", "500m")))}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	plan := simulation.SimulateRemoval(0)
	if left := simulation.FindStrandedPods(plan, 0); len(plan.Nodes) != 1 || len(left) != 1 || left[0].Name != "b-0" {
		t.Errorf("%d new nodes, stranded %+v; want the pod without the toleration", len(plan.Nodes), left)
	}
}

// TestStrandedComparesNewNodes moves three pods to a node and a new node. One fits on both, and the emptier of them is the new one, where the
// plan has it because of its preference.
func TestStrandedComparesNewNodes(t *testing.T) {
	elsewhere := func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: topologyTerm(zoneKey, "ap-northeast-2a")},
		}}}
	}
	snapshot := inZones().Snapshot
	snapshot.Nodes = []planning.Node{node("old", running(taking("large", "2500m"), taking("any", "1", elsewhere), taking("bound", "1", zoneOf("b")))), cores("y", "1", inZone("b"))}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	plan := simulation.SimulateRemoval(0)
	if left := simulation.FindStrandedPods(plan, 0); len(plan.Nodes) != 1 || len(plan.Nominations) != 1 || len(left) != 0 {
		t.Errorf("%d new nodes, %d pods on the node, stranded %+v; want a place for each pod", len(plan.Nodes), len(plan.Nominations), left)
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
