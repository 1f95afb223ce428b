package solver_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestManyValuesOfAnOpenLabel checks that pods which ask for different values of an open label never
// share a node, and that each is planned within a few batches.
func TestManyValuesOfAnOpenLabel(t *testing.T) {
	const teams, batches = 150, 3
	waiting := map[string]planning.PodClass{}
	for i := range teams {
		team := fmt.Sprint("team-", i)
		waiting[team] = planningtest.NewPods(team, 1, "50m", "16Mi", selecting("example.com/team", team))
	}
	for n := range batches {
		var classes []planning.PodClass
		for i := range teams {
			if class, waits := waiting[fmt.Sprint("team-", i)]; waits {
				classes = append(classes, class)
			}
		}
		batch := planningtest.NewBatch(classes...)
		pool := &batch.Snapshot.NodePools[0]
		pool.Spec.Limits, batch.Snapshot.TakenAt = nil, batch.Snapshot.TakenAt.Add(time.Duration(n)*30*time.Second)
		pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "example.com/team", Operator: "Exists"})
		result := solve(t, batch)
		for _, node := range result.Nodes {
			team, single := node.Requirements["example.com/team"].SingleValue()
			if !single || len(node.Pods) != 1 {
				t.Errorf("a node has %d pods and team %s", len(node.Pods), node.Requirements["example.com/team"])
			}
			delete(waiting, team)
		}
	}
	if len(waiting) > 0 {
		t.Errorf("%d of %d pods pending after %d batches", len(waiting), teams, batches)
	}
}

// TestPodsOfOpenLabelsDoNotBlockOthers plans pods that ask for different values of an open label. Two thirds of them fit on no node, which
// must not keep the others waiting for more than the batches of one turn.
func TestPodsOfOpenLabelsDoNotBlockOthers(t *testing.T) {
	var classes []planning.PodClass
	for i := range 150 {
		team, cpu := fmt.Sprintf("team-%03d", i), "5000"
		if i >= 100 {
			cpu = "50m"
		}
		classes = append(classes, planningtest.NewPods(team, 1, cpu, "16Mi", selecting("example.com/team", team)))
	}
	planned := map[string]bool{}
	for n := range 3 {
		batch := planningtest.NewBatch(classes...)
		pool := &batch.Snapshot.NodePools[0]
		pool.Spec.Limits, batch.Snapshot.TakenAt = nil, batch.Snapshot.TakenAt.Add(time.Duration(n)*30*time.Second)
		requirePoolLabel(pool, "example.com/team", karpenter.NodeSelectorOpExists)
		for _, node := range solve(t, batch).Nodes {
			planned[node.Pods[0].Pod.Name] = true
		}
	}
	if len(planned) != 50 {
		t.Errorf("%d of 50 pods planned in three batches", len(planned))
	}
}

// TestVariantsNextToAFixedLabel plans pods that ask for different values of an open label, and for the only value of another.
func TestVariantsNextToAFixedLabel(t *testing.T) {
	for _, fixed := range []string{"example.com/rack", "example.com/zone"} { // One sorts before the open label, and one after.
		pods := func(team string) planning.PodClass {
			return planningtest.NewPods(team, 1, "100m", "64Mi", func(s *planning.PodSpec) { s.NodeSelector = map[string]string{fixed: "1", "example.com/team": team} })
		}
		batch := planningtest.NewBatch(pods("shop"), pods("web"))
		requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
		*requirements = append(*requirements,
			karpenter.NodeSelectorRequirementWithMinValues{Key: fixed, Operator: corev1.NodeSelectorOpIn, Values: []string{"1"}},
			karpenter.NodeSelectorRequirementWithMinValues{Key: "example.com/team", Operator: corev1.NodeSelectorOpIn, Values: []string{"shop", "web"}})
		if r := solve(t, batch); len(r.Nodes) != 2 || count(r.Unplaced) > 0 {
			t.Errorf("%s: %d nodes and %d unplaced pods, want a node for each team", fixed, len(r.Nodes), count(r.Unplaced))
		}
	}
}

// TestPodsWithoutAnAbsentLabel plans a pod for a pool whose nodes do not have a label, next to a pod that asks for it.
func TestPodsWithoutAnAbsentLabel(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("slice", 1, "100m", "64Mi", selecting("slice", "1")), planningtest.NewPods("any", 1, "100m", "64Mi"))
	requirePoolLabel(&batch.Snapshot.NodePools[0], "slice", karpenter.NodeSelectorOpDoesNotExist)
	if r := solve(t, batch); len(r.Nodes) != 1 || count(r.Unplaced) != 1 || r.Unplaced[0].Pods[0].Name != "slice-0" {
		t.Errorf("%d nodes, unplaced %+v; want a node for the pod that does not ask for the label", len(r.Nodes), r.Unplaced)
	}
}

// TestVariantsAreOfferedOnce checks that a launch lists each offering once, also for pods that leave
// open a label which other pods ask for.
func TestVariantsAreOfferedOnce(t *testing.T) {
	const team = "example.com/team"
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "1", "1Gi", selecting(team, "web")), planningtest.NewPods("any", 1, "3", "1Gi"))
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{
		Key: team, Operator: corev1.NodeSelectorOpIn, Values: []string{"shop", "web"},
	})
	result := solver.Solve(batch, planningtest.NewCatalogue())
	if len(result.Nodes) != 2 {
		t.Fatalf("%d nodes", len(result.Nodes))
	}
	for _, node := range result.Nodes {
		seen := map[planning.PricedOffering]bool{}
		for _, o := range node.Offerings {
			if seen[o] {
				t.Errorf("%s in %s is listed twice as %s", o.InstanceType, o.Zone, o.CapacityType)
			}
			seen[o] = true
		}
	}
}

// TestLabelsOfRunningPods plans pods that a running pod keeps away from its rack. Pods for different racks must not share a node, also
// if no pending pod names the label of racks.
func TestLabelsOfRunningPods(t *testing.T) {
	away := averse(corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: selector("app", "web")})
	for _, daemon := range []bool{false, true} {
		batch := planningtest.NewBatch(planningtest.NewPods("w", 4, "500m", "64Mi", requireLabels("app", "web")))
		requirePoolLabel(&batch.Snapshot.NodePools[0], "rack", karpenter.NodeSelectorOpIn, "r1", "r2", "r3")
		batch.Snapshot.Nodes = []planning.Node{node("n", func(n *planning.Node) {
			n.Labels["rack"], n.Used = "r3", n.Allocatable
			running := []planning.PodClass{planningtest.NewPods("r", 1, "100m", "64Mi", away)}
			if n.Pods = running; daemon {
				n.Pods, n.DaemonPods = nil, running
			}
		})}
		result := solve(t, batch)
		if count(result.Unplaced) > 0 {
			t.Errorf("daemon %t: unplaced %+v", daemon, result.Unplaced)
		}
		for _, n := range result.Nodes {
			if rack, single := n.Requirements["rack"].SingleValue(); !single || rack != "r1" && rack != "r2" {
				t.Errorf("daemon %t: a node has rack %q, want r1 or r2", daemon, rack)
			}
		}
	}
}

// TestTenancyOfCountedPods plans a pod that leaves the tenancy open in a zone, and pods that ask for dedicated tenancy and count it in
// their spread: its node must be dedicated too, because a spread counts the pods of those nodes only that its own pods could use.
func TestTenancyOfCountedPods(t *testing.T) {
	zonal := func(s *planning.PodSpec) { s.NodeSelector = map[string]string{zoneKey: "ap-northeast-2a"} }
	evenly := spreads(zoneKey, 1, func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector, c.MinDomains = selector("app", "db"), new(int32(3))
	})
	for _, tt := range []struct {
		name    string
		spread  func(*planning.PodSpec)
		tenancy string
	}{
		{"counted", evenly, karpenter.TenancyDedicated},
		{"not counted", func(*planning.PodSpec) {}, karpenter.TenancyDefault},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := solve(t, inZones(
				planningtest.NewPods("open", 1, "1500m", "1Gi", requireLabels("app", "db"), zonal),
				planningtest.NewPods("dedicated", 3, "1", "1Gi", requireLabels("app", "db"), selecting(karpenter.LabelInstanceTenancy, karpenter.TenancyDedicated), tt.spread),
			))
			if count(result.Unplaced) > 0 {
				t.Fatalf("%d pods unplaced", count(result.Unplaced))
			}
			for _, node := range result.Nodes {
				if node.Pods[0].Pod.Name != "open-0" {
					continue
				}
				if got := planning.InstanceTenancy(node.Requirements); got != tt.tenancy {
					t.Errorf("the node of the open pod has tenancy %s, want %s", got, tt.tenancy)
				}
			}
		})
	}
}

// Pods of which no value of an open label suits all do not share a node, and each node has a value that suits its pods.
func TestConflictsOfAnOpenLabel(t *testing.T) {
	const key = "example.com/tier"
	expression := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	exists := expression(corev1.NodeSelectorOpExists)
	for name, c := range map[string]struct {
		pool  corev1.NodeSelectorRequirement
		pods  []corev1.NodeSelectorRequirement
		nodes int
	}{
		"above and below":    {exists, []corev1.NodeSelectorRequirement{expression(corev1.NodeSelectorOpGt, "5"), expression(corev1.NodeSelectorOpLt, "3")}, 2},
		"overlapping ranges": {exists, []corev1.NodeSelectorRequirement{expression(corev1.NodeSelectorOpGt, "2"), expression(corev1.NodeSelectorOpLt, "9")}, 1},
		"three ranges, the second with each of the others": {exists, []corev1.NodeSelectorRequirement{
			expression(corev1.NodeSelectorOpLt, "3"), expression(corev1.NodeSelectorOpGt, "1"), expression(corev1.NodeSelectorOpGt, "7"),
		}, 2},
		"a range and the value that it does not have": {exists, []corev1.NodeSelectorRequirement{expression(corev1.NodeSelectorOpGt, "5"), expression(corev1.NodeSelectorOpIn, "5")}, 2},
		"a range and the only value that it excludes": {expression(corev1.NodeSelectorOpGt, "1"), []corev1.NodeSelectorRequirement{
			expression(corev1.NodeSelectorOpLt, "3"), expression(corev1.NodeSelectorOpNotIn, "2"),
		}, 2},
		"present and absent": {expression(corev1.NodeSelectorOpNotIn, "gold"), []corev1.NodeSelectorRequirement{exists, expression(corev1.NodeSelectorOpDoesNotExist)}, 2},
		"a range and absent": {expression(corev1.NodeSelectorOpNotIn, "gold"), []corev1.NodeSelectorRequirement{
			expression(corev1.NodeSelectorOpGt, "5"), expression(corev1.NodeSelectorOpDoesNotExist),
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var classes []planning.PodClass
			for i, one := range c.pods {
				classes = append(classes, planningtest.NewPods(fmt.Sprint("pod-", i), 1, "50m", "16Mi", requireExpression(one.Key, one.Operator, one.Values...)))
			}
			batch := planningtest.NewBatch(classes...)
			requirePoolLabel(&batch.Snapshot.NodePools[0], key, c.pool.Operator, c.pool.Values...)
			result := solve(t, batch)
			if len(result.Nodes) != c.nodes || len(result.Unplaced) > 0 {
				t.Errorf("%d nodes, want %d; unplaced %+v", len(result.Nodes), c.nodes, result.Unplaced)
			}
			for _, n := range result.Nodes {
				for _, p := range n.Pods {
					for i, one := range c.pods {
						wanted := planning.NewValues(one.Operator, one.Values...)
						if p.Pod.Name == fmt.Sprintf("pod-%d-0", i) && (n.Requirements[key].IsEmpty() || !n.Requirements.AllowedValues(key).IsSubset(wanted)) {
							t.Errorf("pod %d requires %s, and its node has %s", i, wanted, n.Requirements[key])
						}
					}
				}
			}
		})
	}
}
