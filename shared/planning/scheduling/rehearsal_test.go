package scheduling_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
	"github.com/joist-autoscaler/joist/shared/planning/schedulingtest"
)

// cores is a node with so many free cores, and twice as many that are there.
func cores(name, free string, edits ...func(*scheduling.Node)) scheduling.Node {
	return node(name, append([]func(*scheduling.Node){func(n *scheduling.Node) {
		used := resource.MustParse("4")
		used.Sub(resource.MustParse(free))
		n.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("20"),
		}
		n.Used = corev1.ResourceList{corev1.ResourceCPU: used}
	}}, edits...)...)
}

// leaving is the node that goes, with its pods.
func leaving(pods ...scheduling.PodClass) scheduling.Node { return node("old", running(pods...)) }

func taking(name, cpu string, edits ...func(*scheduling.PodSpec)) scheduling.PodClass {
	return schedulingtest.Pods(name, 1, cpu, "100Mi", edits...)
}

func occupied(pod scheduling.PodClass) func(*scheduling.Node) {
	return func(n *scheduling.Node) { n.Pods = append(n.Pods, pod) }
}

func zoneOf(letter string) func(*scheduling.PodSpec) {
	return selecting(corev1.LabelTopologyZone, "ap-northeast-2"+letter)
}

// TestStranded removes the first node where nothing can be launched, and every pod
// has a place in the plan.
func TestStranded(t *testing.T) {
	tainted := func(n *scheduling.Node) {
		n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerant := func(s *scheduling.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	ported := func(s *scheduling.PodSpec) { s.HostPorts = []scheduling.HostPort{{Port: 80}} }
	labelled := func(s *scheduling.PodSpec) { s.Labels = map[string]string{"app": "a"} }
	porting := func(n *scheduling.Node) { n.HostPorts = []scheduling.HostPort{{Port: 80}} }
	for _, tt := range []struct {
		name  string
		nodes []scheduling.Node
		want  []string
	}{
		{"each fits wherever the others are", []scheduling.Node{
			leaving(taking("large", "1500m"), taking("small", "1")), cores("x", "2"), cores("y", "2"),
		}, nil},
		{"the large one takes the room of two small ones", []scheduling.Node{
			leaving(taking("large", "1500m"), schedulingtest.Pods("small", 2, "1", "100Mi")), cores("x", "1500m"), cores("y", "2"),
		}, []string{"small-1"}},
		{"where one of a kind goes at a time, the second large one comes too late", []scheduling.Node{
			leaving(schedulingtest.Pods("large", 2, "2", "100Mi"), taking("small", "1")), cores("x", "3"), cores("y", "2"),
		}, []string{"large-1"}},
		{"a third node has room, and takes what the plan had elsewhere", []scheduling.Node{
			leaving(taking("large", "1500m"), schedulingtest.Pods("small", 2, "1", "100Mi")), cores("x", "1500m"), cores("y", "2"), cores("z", "1"),
		}, nil},
		{"but not who does not tolerate it", []scheduling.Node{
			leaving(taking("large", "1500m"), schedulingtest.Pods("small", 2, "1", "100Mi")), cores("x", "1500m"), cores("y", "2"), cores("z", "1", tainted),
		}, []string{"small-1"}},
		{"who tolerates it goes there", []scheduling.Node{
			leaving(taking("large", "1500m", tolerant), taking("small", "1")), cores("x", "1"), cores("y", "2", tainted),
		}, nil},
		{"who may go anywhere takes it from who may not", []scheduling.Node{
			leaving(taking("any", "1500m"), taking("bound", "1", zoneOf("b"))), cores("x", "1500m"), cores("y", "2", inZone("b")),
		}, []string{"bound-0"}},
		{"who keeps away from others does not go to them", []scheduling.Node{
			leaving(taking("large", "1500m"), taking("a", "1", apart("a"))), cores("x", "1500m", occupied(taking("c", "1", apart("a")))), cores("y", "2"),
		}, []string{"a-0"}},
		{"nor who is kept away", []scheduling.Node{
			leaving(taking("large", "1500m"), taking("a", "1", labelled)), cores("x", "1500m", occupied(taking("c", "1", apart("a")))), cores("y", "2"),
		}, []string{"a-0"}},
		{"those who came keep each other away", []scheduling.Node{
			leaving(taking("large", "1600m", tolerant), taking("a", "500m", apart("a")), taking("b", "500m", apart("a"))),
			cores("w", "1600m", tainted), cores("x", "1"), cores("y", "2"),
		}, []string{"b-0"}},
		{"a host port is given away once", []scheduling.Node{
			leaving(taking("large", "1600m", tolerant), taking("a", "500m", ported), taking("b", "500m", ported)),
			cores("w", "1600m", tainted), cores("x", "1"), cores("y", "2"),
		}, []string{"b-0"}},
		{"and not where it is given away", []scheduling.Node{
			leaving(taking("large", "1500m"), taking("a", "1", ported)), cores("x", "1500m", porting), cores("y", "2"),
		}, []string{"a-0"}},
		{"who is spread over zones stays in that of the plan", []scheduling.Node{
			leaving(taking("large", "1500m"), taking("a", "1", spreadIn(corev1.LabelTopologyZone, "a"))),
			cores("x", "1500m", inZone("b"), occupied(taking("c", "1", spreadIn(corev1.LabelTopologyZone, "a")))), cores("y", "2"),
		}, []string{"a-0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			snapshot.Nodes = tt.nodes
			closed(&snapshot)
			simulation := scheduling.NewSimulation(snapshot, scheduling.NewStock(snapshot, schedulingtest.Catalogue()))
			plan := simulation.Without(0)
			if len(plan.Unplaced) > 0 {
				t.Fatalf("the plan leaves pods out:\n%s", tell(plan))
			}
			var got []string
			for _, pod := range simulation.Stranded(plan, 0) {
				if got = append(got, pod.Name); pod.Node != "old" {
					t.Errorf("%s is said to run on %s", pod.Name, pod.Node)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStrandedCountsWhatWasTaken has room for two pods where Kubernetes puts one of
// each node that goes.
func TestStrandedCountsWhatWasTaken(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.Nodes = []scheduling.Node{
		node("a", running(taking("a", "1500m"))), node("b", running(schedulingtest.Pods("b", 2, "1", "100Mi"))), cores("x", "1500m"), cores("y", "2"),
	}
	closed(&snapshot)
	simulation := scheduling.NewSimulation(snapshot, scheduling.NewStock(snapshot, schedulingtest.Catalogue()))
	first, second := simulation.Without(0), simulation.Without(1)
	if n := len(simulation.Stranded(first, 0)) + len(simulation.Stranded(second, 1)); n > 0 {
		t.Fatalf("each alone strands %d pods", n)
	}
	simulation.Take(first, 0)
	second = simulation.Without(1)
	if len(second.Unplaced) > 0 {
		t.Fatalf("the plan leaves pods out:\n%s", tell(second))
	}
	if left := simulation.Stranded(second, 1); len(left) != 1 || left[0].Node != "b" {
		t.Errorf("%d pods are stranded: %+v", len(left), left)
	}
}

// TestStrandedOnNewNodes counts a new node as the cheapest of its options.
func TestStrandedOnNewNodes(t *testing.T) {
	snapshot := inZones().Snapshot
	snapshot.Nodes = []scheduling.Node{node("old", running(schedulingtest.Pods("a", 3, "500m", "100Mi")))}
	simulation := scheduling.NewSimulation(snapshot, scheduling.NewStock(snapshot, schedulingtest.Catalogue()))
	plan := simulation.Without(0)
	if left := simulation.Stranded(plan, 0); len(plan.Nodes) == 0 || len(left) > 0 {
		t.Fatalf("%d pods are stranded on %d new nodes", len(left), len(plan.Nodes))
	}
	plan.Nodes = nil
	if left := simulation.Stranded(plan, 0); len(left) != 3 {
		t.Errorf("%d pods are stranded without any node", len(left))
	}
}

// TestStrandedIsForgotten asks much of one simulation, and the same of others that
// were asked nothing before.
func TestStrandedIsForgotten(t *testing.T) {
	cat := schedulingtest.Catalogue()
	var some, none int
	rapid.Check(t, func(t *rapid.T) {
		snapshot := genCluster(t)
		stock := scheduling.NewStock(snapshot, cat)
		asked := scheduling.NewSimulation(snapshot, stock)
		type removal struct {
			result scheduling.Result
			nodes  []int
		}
		var taken []removal
		for range rapid.IntRange(1, 6).Draw(t, "questions") {
			nodes := rapid.SliceOfNDistinct(rapid.IntRange(0, len(snapshot.Nodes)-1), 1, 3, rapid.ID).Draw(t, "nodes")
			result := asked.Without(nodes...)
			fresh := scheduling.NewSimulation(snapshot, stock)
			for _, one := range taken {
				fresh.Take(one.result, one.nodes...)
			}
			got, want := asked.Stranded(result, nodes...), fresh.Stranded(result, nodes...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("without %v, after %d were taken:\n%s", nodes, len(taken), diff)
			}
			if some, none = some+min(1, len(got)), none+1-min(1, len(got)); rapid.Bool().Draw(t, "take") {
				asked.Take(result, nodes...)
				taken = append(taken, removal{result, slices.Clone(nodes)})
			}
		}
	})
	t.Logf("%d removals strand pods, %d do not", some, none)
	if some == 0 || none == 0 {
		t.Error("the clusters are too easy or too hard to prove anything")
	}
}
