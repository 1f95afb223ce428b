package solver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// teams returns a batch with two pools over three zones. Their nodes differ in the label team and, if
// tainted is set, in a taint.
func teams(tainted bool, pending ...planning.PodClass) planning.Batch {
	batch := inZones(pending...)
	first := batch.Snapshot.NodePools[0]
	batch.Snapshot.NodePools = nil
	for _, team := range []string{"a", "b"} {
		pool := *first.DeepCopy()
		pool.Name, pool.UID = team, first.UID+"-"+first.UID
		pool.Spec.Template.Labels = map[string]string{"team": team}
		if tainted {
			pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "team", Value: team, Effect: corev1.TaintEffectNoSchedule}}
		}
		batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, pool)
	}
	return batch
}

// perPool counts the pods on new nodes by pool and last character of the zone.
func perPool(result planning.Result) map[string]int {
	out := map[string]int{}
	for _, n := range result.Nodes {
		zone, _ := n.Requirements[zoneKey].SingleValue()
		out[n.NodePool+zone[max(0, len(zone)-1):]] += len(n.Pods)
	}
	return out
}

func tolerating(team string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpEqual, Value: team, Effect: corev1.TaintEffectNoSchedule}}
	}
}

// both selects a team and a zone.
func both(team, zone string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.NodeSelector = map[string]string{"team": team, zoneKey: zone}
	}
}

// TestSpreadNodeInclusionPolicies plans two sets of pods with one label. The constraint of one set
// does not count the nodes of the other.
func TestSpreadNodeInclusionPolicies(t *testing.T) {
	web := requireLabels("app", "web")
	affinity := func(policy corev1.NodeInclusionPolicy) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &policy }
	}
	taints := func(policy corev1.NodeInclusionPolicy) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &policy }
	}
	asWritten := func(*corev1.TopologySpreadConstraint) {}
	for _, tt := range []struct {
		name    string
		tainted bool
		edit    func(*corev1.TopologySpreadConstraint)
		want    string
	}{
		{"nodeAffinityPolicy unset", false, asWritten, "1 1 1"},
		{"nodeAffinityPolicy Honor", false, affinity(corev1.NodeInclusionPolicyHonor), "1 1 1"},
		{"nodeAffinityPolicy Ignore", false, affinity(corev1.NodeInclusionPolicyIgnore), "0 1 2"},
		{"nodeTaintsPolicy Honor", true, taints(corev1.NodeInclusionPolicyHonor), "1 1 1"},
		{"nodeTaintsPolicy Ignore", true, taints(corev1.NodeInclusionPolicyIgnore), "0 1 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spread := spreads(zoneKey, 1, tt.edit)
			a, b := selecting("team", "a"), both("b", "ap-northeast-2a")
			if tt.tainted {
				a, b = tolerating("a"), func(s *planning.PodSpec) { tolerating("b")(s); selecting(zoneKey, "ap-northeast-2a")(s) }
			}
			result := solve(t, teams(tt.tainted, planningtest.NewPods("b", 2, "600m", "64Mi", web, b, spread), planningtest.NewPods("a", 3, "500m", "64Mi", web, a, spread)))
			got := perPool(result)
			if got["ba"] != 2 || count(result.Unplaced) > 0 {
				t.Fatalf("pods by pool and zone %v, %d unplaced", got, count(result.Unplaced))
			}
			zones := sizes(map[string]int{"a": got["aa"], "b": got["ab"], "c": got["ac"]})
			if diff := cmp.Diff(tt.want, fmt.Sprintf("%d %d %d", zones[0], zones[1], zones[2])); diff != "" {
				t.Errorf("pods of team a by zone: %v\n%s", got, diff)
			}
		})
	}
}

// TestSpreadCountsNewNodesOfItsTeam plans pods of one team that are spread over zones, next to pods with the same label that may run on
// nodes of any team, but get nodes of the preferred one in zone c. The constraint does not count these.
func TestSpreadCountsNewNodesOfItsTeam(t *testing.T) {
	web := requireLabels("app", "web")
	batch := teams(false, planningtest.NewPods("any", 6, "500m", "64Mi", web, selecting(zoneKey, "ap-northeast-2c"), spreads(karpenter.CapacityTypeLabelKey, 6)),
		planningtest.NewPods("a", 6, "400m", "64Mi", web, selecting("team", "a"), spreads(zoneKey, 1)))
	batch.Snapshot.NodePools[1].Spec.Weight = new(int32(100))
	if diff := cmp.Diff(map[string]int{"aa": 2, "ab": 2, "ac": 2, "bc": 6}, perPool(solve(t, batch))); diff != "" {
		t.Error(diff)
	}
}

// TestSpreadOverAlternatives plans pods that may run on nodes of two teams, in one zone each, next to pods of a third team with the
// same label. The constraint counts the nodes of either team, and none of the third.
func TestSpreadOverAlternatives(t *testing.T) {
	web := requireLabels("app", "web")
	term := func(team, zone string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: append(topologyTerm("team", team).MatchExpressions, topologyTerm(zoneKey, zone).MatchExpressions...)}
	}
	either := func(s *planning.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{term("a", "ap-northeast-2a"), term("b", "ap-northeast-2b")}}}}
	}
	at := func(zone, team string, pods int) planning.Node {
		return node(team+zone, inZone(zone), func(n *planning.Node) {
			n.Labels["team"], n.Labels["rack"], n.Used = team, "1", n.Allocatable
			if pods > 0 {
				n.Pods = []planning.PodClass{planningtest.NewPods("running-"+team+zone, pods, "10m", "1Mi", web)}
			}
		})
	}
	for _, tt := range []struct {
		name  string
		nodes []planning.Node
		want  map[string]int
	}{
		{"no pods run", nil, map[string]int{"aa": 2, "bb": 2}},
		{"pods run on nodes of the first alternative", []planning.Node{at("a", "a", 2)}, map[string]int{"aa": 1, "bb": 3}},
		{"pods run on nodes of the second alternative", []planning.Node{at("b", "b", 2)}, map[string]int{"aa": 3, "bb": 1}},
		{"pods run on nodes of both", []planning.Node{at("a", "a", 2), at("b", "b", 2)}, map[string]int{"aa": 2, "bb": 2}},
		{"pods run on nodes of neither", []planning.Node{at("a", "b", 2), at("b", "c", 1), at("c", "a", 1)}, map[string]int{"aa": 2, "bb": 2}},
	} {
		for _, spread := range []struct {
			name string
			edit func(*planning.PodSpec)
		}{
			{"zones", func(*planning.PodSpec) {}},
			{"zones and racks", spreads("rack", 4)},
		} {
			t.Run(tt.name+"/"+spread.name, func(t *testing.T) {
				batch := teams(false, planningtest.NewPods("web", 4, "500m", "64Mi", web, either, spreads(zoneKey, 1), spread.edit))
				for i := range batch.Snapshot.NodePools {
					batch.Snapshot.NodePools[i].Spec.Template.Labels["rack"] = "1"
				}
				batch.Snapshot.Nodes = tt.nodes
				if diff := cmp.Diff(tt.want, perPool(solve(t, batch))); diff != "" {
					t.Errorf("pods by pool and zone (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestSpreadOfTwoPools plans two sets of pods with the same spread, each over its own nodes.
func TestSpreadOfTwoPools(t *testing.T) {
	web := requireLabels("app", "web")
	result := solve(t, teams(false,
		planningtest.NewPods("b", 4, "600m", "64Mi", web, selecting("team", "b"), spreads(zoneKey, 1)),
		planningtest.NewPods("a", 4, "500m", "64Mi", web, selecting("team", "a"), spreads(zoneKey, 1))))
	got := perPool(result)
	for _, pool := range []string{"a", "b"} {
		zones := sizes(map[string]int{"a": got[pool+"a"], "b": got[pool+"b"], "c": got[pool+"c"]})
		if diff := cmp.Diff([]int{1, 1, 2}, zones); diff != "" {
			t.Errorf("pods of pool %s by zone: %v\n%s", pool, got, diff)
		}
	}
}

// TestVolumeZonesDoNotLimitSpread plans pods whose volumes are all in one zone. kube-scheduler counts
// the other zones as empty domains, so it binds only as many pods there as the skew allows.
// Karpenter: pkg/controllers/provisioning/scheduling/nodeclaim.go (tryVolumeAlternative).
func TestVolumeZonesDoNotLimitSpread(t *testing.T) {
	volume := func(s *planning.PodSpec) {
		s.Volumes = []planning.Volume{{Driver: "ebs.csi.aws.com", Alternatives: []corev1.NodeSelectorTerm{topologyTerm(zoneKey, "ap-northeast-2a")}}}
	}
	for _, tt := range []struct {
		name string
		edit func(*planning.PodSpec)
		want int
	}{
		{"volumes", volume, 1},
		{"node selector", selecting(zoneKey, "ap-northeast-2a"), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := solve(t, inZones(planningtest.NewPods("web", 3, "500m", "64Mi", requireLabels("app", "web"), tt.edit, spreads(zoneKey, 1))))
			if got := 3 - count(result.Unplaced); got != tt.want {
				t.Errorf("%d of 3 pods planned, want %d: %+v", got, tt.want, result.Unplaced)
			}
		})
	}
}

// TestSpreadCountsOnlyItsNodes plans pods of zone c with a spread over capacity types next to larger pods with the same
// label. The larger pods fit only on an on-demand node in zone a, which the spread does not count, although they would
// be allowed on on-demand nodes in zone c.
func TestSpreadCountsOnlyItsNodes(t *testing.T) {
	web, key := requireLabels("app", "web"), karpenter.CapacityTypeLabelKey
	capacityType := func(value string) func(*planning.Node) {
		return func(n *planning.Node) { n.Labels[key] = value }
	}
	full := func(n *planning.Node) { n.Used = n.Allocatable }
	large := planningtest.NewPods("large", 2, "600m", "64Mi", web, selecting(key, "on-demand"))
	small := planningtest.NewPods("small", 2, "50m", "64Mi", web, selecting(zoneKey, "ap-northeast-2c"), spreads(key, 1))
	nodes := []planning.Node{
		node("on-demand-a", inZone("a"), capacityType("on-demand")), node("on-demand-c", inZone("c"), capacityType("on-demand"), full), node("spot-c", inZone("c"), capacityType("spot")),
	}
	for _, tt := range []struct {
		name string
		plan func(*testing.T) planning.Result
	}{
		{"pending pods", func(t *testing.T) planning.Result {
			batch := inZones(large, small)
			closed(&batch.Snapshot)
			batch.Snapshot.Nodes = nodes
			return solve(t, batch)
		}},
		{"removal with one node", func(t *testing.T) planning.Result {
			snapshot := inZones().Snapshot
			closed(&snapshot)
			snapshot.Nodes = append([]planning.Node{node("old", inZone("a"), capacityType("spot"), running(large), running(small))}, nodes...)
			return solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemovalWithOneNode(0)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := tt.plan(t)
			onto := map[string]int{}
			for _, n := range result.Nominations {
				onto[n.Node]++
			}
			if diff := cmp.Diff(map[string]int{"on-demand-a": 2, "spot-c": 1}, onto); diff != "" || count(result.Unplaced) != 1 {
				t.Errorf("pods by node and %d unplaced:\n%s", count(result.Unplaced), diff)
			}
		})
	}
}

// TestSpreadCountsOnlyNodesWithAllItsLabels plans pods that are spread over zones and racks. The running pods are on a node
// without a rack, which kube-scheduler does not count in the spread over zones either.
func TestSpreadCountsOnlyNodesWithAllItsLabels(t *testing.T) {
	web := requireLabels("app", "web")
	batch := inZones(planningtest.NewPods("w", 3, "500m", "64Mi", web, spreads(zoneKey, 1), spreads("rack", 3)))
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "rack", Operator: karpenter.NodeSelectorOpIn, Values: []string{"1"}})
	batch.Snapshot.Nodes = []planning.Node{node("without", func(n *planning.Node) {
		n.Pods, n.Used = []planning.PodClass{planningtest.NewPods("running", 2, "100m", "64Mi", web)}, n.Allocatable
	})}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1}, perZone(solve(t, batch))); diff != "" {
		t.Errorf("pods by zone (-want +got):\n%s", diff)
	}
}

// TestSpreadDoesNotCountNodesThatMayBeElsewhere spreads pods of zone c over capacity types next to on-demand nodes with the same label, which
// may be launched in any zone. Those nodes may not count for the spread.
func TestSpreadDoesNotCountNodesThatMayBeElsewhere(t *testing.T) {
	key := karpenter.CapacityTypeLabelKey
	batch := planningtest.NewBatch(
		planningtest.NewPods("other", 4, "1", "64Mi", requireLabels("app", "db", "role", "other"), selecting(key, karpenter.CapacityTypeOnDemand)),
		planningtest.NewPods("db", 4, "1", "64Mi", affine(corev1.PodAffinityTerm{TopologyKey: corev1.LabelArchStable, LabelSelector: selector("role", "other")}), spreadIn(key, "db"), zoneOf("c")),
	)
	batch.Snapshot.NodePools = inZones().Snapshot.NodePools
	batch.Snapshot.NodeClasses = inZones().Snapshot.NodeClasses
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = slices.DeleteFunc(*requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool { return r.Key == key })
	result := solve(t, batch)
	got := map[string]int{}
	for _, n := range result.Nodes {
		for _, pod := range n.Pods {
			if value, _ := n.Requirements[key].SingleValue(); strings.HasPrefix(pod.Pod.UID, "db") {
				got[value]++
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"on-demand": 2, "spot": 2}, got); diff != "" || len(result.Unplaced) > 0 {
		t.Errorf("unplaced %+v, pods by capacity type:\n%s", result.Unplaced, diff)
	}
}
