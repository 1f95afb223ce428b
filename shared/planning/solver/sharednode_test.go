package solver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// watching adds a spread over zones that counts only other pods.
func watching(skew int32, app string) func(*planning.PodSpec) {
	return spreads(zoneKey, skew, func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector, c.MinDomains = selector("app", app), new(int32(4))
	})
}

// TestSelfAffinityChoosesFeasibleZone places pods that must share one node, and that a spread counts by zone. Only one zone,
// neither the first nor the last, has a node that holds them all.
func TestSelfAffinityChoosesFeasibleZone(t *testing.T) {
	batch := inZones(
		planningtest.NewPods("flock", 3, "1", "64Mi", requireLabels("app", "flock"), affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "flock")})),
		planningtest.NewPods("watch", 2, "100m", "64Mi", watching(5, "flock")))
	for _, zone := range []string{"ap-northeast-2a", "ap-northeast-2c"} {
		batch.Snapshot.Unavailable = append(batch.Snapshot.Unavailable, planning.Unavailable{
			Offering: event.Offering{InstanceType: "t4g.xlarge", Zone: zone, CapacityType: karpenter.CapacityTypeOnDemand}, Until: planningtest.Now.Add(1),
		})
	}
	result := solve(t, batch)
	if got := perZone(result); len(result.Unplaced) > 0 || got["b"] < 3 {
		t.Errorf("pods by zone %v, unplaced %+v", got, result.Unplaced)
	}
}

// TestSelfAffinityChoosesNodeWithRoom places pods that must share one node, and that a spread counts by zone. New nodes are
// too small for all of them, and of the existing nodes only the one in zone b is large enough.
func TestSelfAffinityChoosesNodeWithRoom(t *testing.T) {
	host := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "flock")}
	batch := inZones(
		planningtest.NewPods("flock", 5, "1", "64Mi", requireLabels("app", "flock"), affine(host)),
		planningtest.NewPods("watch", 2, "100m", "64Mi", watching(5, "flock")))
	batch.Snapshot.Nodes = []planning.Node{cores("a", "1"), cores("b", "1", inZone("b"), func(n *planning.Node) {
		n.Allocatable[corev1.ResourceCPU], n.Used = resource.MustParse("6"), nil
	}), cores("c", "3", inZone("c"))}
	onto := map[string]int{}
	result := solve(t, batch)
	for _, n := range result.Nominations {
		if n.Pod.Name[:5] == "flock" {
			onto[n.Node]++
		}
	}
	if onto["b"] != 5 {
		t.Errorf("pods by node %v, unplaced %+v", onto, result.Unplaced)
	}
}

// TestSelfAffinityYieldsToBoundPods places pods with one affinity to their own label. Some of them can only go to zone b, so
// that the others must go there too. One pod can go nowhere. No second effort is needed.
func TestSelfAffinityYieldsToBoundPods(t *testing.T) {
	web := requireLabels("app", "web")
	together := affine(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "web")})
	batch := inZones(
		planningtest.NewPods("free", 2, "900m", "64Mi", web, together),
		planningtest.NewPods("bound", 2, "500m", "64Mi", web, together, selecting(zoneKey, "ap-northeast-2b")),
		planningtest.NewPods("lost", 1, "100m", "64Mi", web, func(s *planning.PodSpec) { s.Volumes = []planning.Volume{{Claim: "data", Problem: "it is lost"}} }),
	)
	stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
	if result := solver.FirstEffort(batch, stock); perZone(result)["b"] != 4 || count(result.Unplaced) != 1 {
		t.Errorf("pods by zone %v, unplaced %+v", perZone(result), result.Unplaced)
	}
	batch.Snapshot.Nodes = []planning.Node{node("old", running(batch.Pending...))}
	if result := solver.NewSimulation(batch.Snapshot, stock).SimulateRemovalWithOneNode(0); perZone(result)["b"] != 4 || count(result.Unplaced) != 1 {
		t.Errorf("one by one: pods by zone %v, unplaced %+v", perZone(result), result.Unplaced)
	}
}

// TestSelfAffinityDoesNotYieldToOtherPods places a large pod with an affinity to its own label before a small pod that this
// affinity does not select, one by one. The other order leaves no room for the large pod.
func TestSelfAffinityDoesNotYieldToOtherPods(t *testing.T) {
	snapshot := inZones().Snapshot
	closed(&snapshot)
	snapshot.Nodes = []planning.Node{
		node("old", running(taking("large", "3", besideOver(zoneKey, "large")), taking("small", "1", zoneOf("b")))), cores("n1", "3", inZone("b")), cores("n2", "1", inZone("b")),
	}
	result := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemovalWithOneNode(0)
	if len(result.Nominations) != 2 {
		t.Errorf("%d of 2 pods have a node, unplaced %+v", len(result.Nominations), result.Unplaced)
	}
}

// TestFollowersOfLaterPodsAreRetried places databases, and a pod next to each of them. One database and its pod fit on the
// node that the databases prefer. The other database gets a new node once its preference is dropped, and its pod follows.
func TestFollowersOfLaterPodsAreRetried(t *testing.T) {
	db, beside := requireLabels("app", "db"), affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "db")})
	batch := inZones(
		planningtest.NewPods("db", 2, "500m", "64Mi", db, func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: topologyTerm("disk", "fast")},
			}}}
		}),
		planningtest.NewPods("follower", 2, "400m", "64Mi", beside),
	)
	batch.Snapshot.Nodes = []planning.Node{cores("preferred", "900m", func(n *planning.Node) { n.Labels["disk"] = "fast" })}
	result := solver.FirstEffort(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue()))
	if len(result.Nominations) != 2 || len(result.Nodes) != 1 || len(result.Unplaced) > 0 {
		t.Errorf("%d pods on the node, %d new nodes, unplaced %+v", len(result.Nominations), len(result.Nodes), result.Unplaced)
	}
}

// TestPreferencesOfCountedPodsAreDropped places a pod that prefers a full node, and another pod whose rule selects it. The pod gets a node
// once its preference is dropped, and the other pod follows although no pod was placed before. No second effort is needed.
func TestPreferencesOfCountedPodsAreDropped(t *testing.T) {
	for name, rule := range map[string]func(*planning.PodSpec){
		"spread":              watching(5, "db"),
		"affinity over zones": affine(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "db")}),
		"affinity over nodes": affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "db")}),
	} {
		t.Run(name, func(t *testing.T) {
			batch := inZones(
				planningtest.NewPods("db", 1, "500m", "64Mi", requireLabels("app", "db"), func(s *planning.PodSpec) {
					s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
						{Weight: 1, Preference: topologyTerm("disk", "fast")},
					}}}
				}),
				planningtest.NewPods("other", 1, "400m", "64Mi", rule))
			batch.Snapshot.Nodes = []planning.Node{cores("full", "100m", func(n *planning.Node) { n.Labels["disk"] = "fast" })}
			stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
			if result := solver.FirstEffort(batch, stock); len(result.Unplaced) > 0 {
				t.Errorf("unplaced %+v", result.Unplaced)
			}
			if steps := solver.FirstSteps(batch, stock); steps > 10e3 {
				t.Errorf("planning took %d steps", steps)
			}
		})
	}
}

// TestUnplacedPodsWithRulesAreTriedOnce plans pods that exclude each other over host names and do not fit on the only node. A round that
// places nothing is the last.
func TestUnplacedPodsWithRulesAreTriedOnce(t *testing.T) {
	batch := inZones(planningtest.NewPods("web", 2, "500m", "64Mi", requireLabels("app", "web"), averse(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "web")})))
	closed(&batch.Snapshot)
	batch.Snapshot.Nodes = []planning.Node{cores("full", "100m")}
	if steps := solver.FirstSteps(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())); steps > 10e3 {
		t.Errorf("planning took %d steps", steps)
	}
}

// TestPodsThatCountOthersComeFirst places pods with a spread that counts only other pods before those other pods.
func TestPodsThatCountOthersComeFirst(t *testing.T) {
	together := affine(corev1.PodAffinityTerm{TopologyKey: karpenter.CapacityTypeLabelKey, LabelSelector: selector("app", "web")})
	result := solve(t, inZones(
		planningtest.NewPods("big", 20, "900m", "64Mi", requireLabels("app", "web"), together),
		planningtest.NewPods("watch", 1, "100m", "64Mi", watching(1, "web"))))
	if len(result.Unplaced) > 0 {
		t.Errorf("unplaced: %+v", result.Unplaced)
	}
}

// TestPodsThatCountWatchersComeFirst places a pod with a spread that counts only pods which themselves have a spread that counts only
// others. All of them may only go to one zone. The first pod can go there only before the others.
func TestPodsThatCountWatchersComeFirst(t *testing.T) {
	here := zoneOf("a")
	result := solve(t, inZones(
		planningtest.NewPods("leaf", 1, "100m", "64Mi", requireLabels("app", "leaf")),
		planningtest.NewPods("middle", 4, "900m", "64Mi", requireLabels("app", "middle"), watching(1, "leaf"), here),
		planningtest.NewPods("top", 1, "100m", "64Mi", requireLabels("app", "top"), watching(1, "middle"), here)))
	if len(result.Unplaced) > 0 {
		t.Errorf("unplaced: %+v", result.Unplaced)
	}
}

// TestSelfAffinityCountsPodsOfVariedNodes places four pods that must share one node, and that a spread counts by zone. The node in zone
// a holds three of them. A new node may only be in zone b, and enough of its types hold all four.
func TestSelfAffinityCountsPodsOfVariedNodes(t *testing.T) {
	host := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector("app", "flock")}
	batch := varied("Strict", map[string]int{corev1.LabelInstanceTypeStable: 2},
		planningtest.NewPods("flock", 4, "400m", "64Mi", requireLabels("app", "flock"), affine(host)),
		planningtest.NewPods("watch", 2, "100m", "64Mi", watching(5, "flock")))
	requirePoolLabel(&batch.Snapshot.NodePools[0], zoneKey, karpenter.NodeSelectorOpIn, "ap-northeast-2b")
	batch.Snapshot.Nodes = []planning.Node{cores("a", "1200m")}
	result := solve(t, batch)
	if got := perZone(result); got["b"] < 4 {
		t.Errorf("pods by zone %v, unplaced %+v", got, result.Unplaced)
	}
}

// TestLimitsOnCountedPodsAreCheap leaves pods unplaced that a spread counts by zone; they must not be
// retried again and again.
func TestLimitsOnCountedPodsAreCheap(t *testing.T) {
	batch := inZones(
		planningtest.NewPods("big", 20, "1", "64Mi", requireLabels("app", "web")),
		planningtest.NewPods("watch", 1, "100m", "64Mi", watching(5, "web")))
	batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("2")}
	stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
	if left := countUnplaced(solver.SolveWithTypes(batch, stock)); left == 0 {
		t.Fatal("every pod was placed, so the test cannot fail")
	}
	if steps := solver.FirstSteps(batch, stock); steps > 50e3 {
		t.Errorf("planning took %d steps", steps)
	}
}
