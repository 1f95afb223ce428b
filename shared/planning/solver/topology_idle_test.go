package solver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestRulesWithoutSelectedPods plans two small pods whose rule selects no pod. The rule must not keep them
// apart.
func TestRulesWithoutSelectedPods(t *testing.T) {
	nobody := selector("app", "nobody")
	selects := func(s *metav1.LabelSelector) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = s }
	}
	for _, tt := range []struct {
		name string
		rule func(*planning.PodSpec)
	}{
		{"spread with no selector", spreads(zoneKey, 1, selects(nil))},
		{"spread whose selector selects no pod", spreads(zoneKey, 1, selects(nobody))},
		{"spread over a label of the instance type", spreads(corev1.LabelInstanceTypeStable, 1, selects(nil))},
		{"spread with minDomains", spreads(zoneKey, 1, selects(nil), func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(5)) })},
		{"preferred spread", spreads(zoneKey, 1, selects(nil), anyway)},
		{"anti-affinity with no selector", averse(corev1.PodAffinityTerm{TopologyKey: zoneKey})},
		{"anti-affinity whose selector selects no pod", averse(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: nobody})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := solve(t, inZones(planningtest.NewPods("w", 2, "10m", "64Mi", requireLabels("app", "web"), tt.rule)))
			if len(result.Nodes) != 1 || count(result.Unplaced) != 0 {
				t.Errorf("%d nodes and %d unplaced pods, want 1 and 0", len(result.Nodes), count(result.Unplaced))
			}
		})
	}
}

// TestSpreadNeedsItsLabel checks that even a spread that counts no pods requires its label:
// kube-scheduler puts such pods on no node without it.
func TestSpreadNeedsItsLabel(t *testing.T) {
	noSelector := func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = nil }
	pods := planningtest.NewPods("w", 2, "10m", "64Mi", requireLabels("app", "web"), spreads("rack", 1, noSelector))
	if result := solve(t, inZones(pods)); count(result.Unplaced) != 2 {
		t.Errorf("%d unplaced pods, want both because no node has the label", count(result.Unplaced))
	}
	batch := inZones(pods)
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "rack", Operator: karpenter.NodeSelectorOpIn, Values: []string{"1", "2"}})
	result := solve(t, batch)
	if len(result.Nodes) != 1 || count(result.Unplaced) != 0 {
		t.Fatalf("%d nodes and %d unplaced pods, want 1 and 0", len(result.Nodes), count(result.Unplaced))
	}
	if rack, ok := result.Nodes[0].Requirements["rack"].SingleValue(); !ok {
		t.Errorf("rack of the node = %q, want a value of the pool", rack)
	}
}

// TestMissingSelectorSelectsNoPod plans two sets of pods: the constraint of one has no selector, that of
// the other selects all pods.
func TestMissingSelectorSelectsNoPod(t *testing.T) {
	none, all := (*metav1.LabelSelector)(nil), &metav1.LabelSelector{}
	selects := func(s *metav1.LabelSelector) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = s }
	}
	batch := inZones(
		planningtest.NewPods("none", 1, "500m", "64Mi", spreads(zoneKey, 1, selects(none))),
		planningtest.NewPods("all", 3, "400m", "64Mi", spreads(zoneKey, 1, selects(all))),
	)
	batch.Snapshot.Nodes = []planning.Node{node("full", func(n *planning.Node) {
		n.Labels[zoneKey] = "ap-northeast-2c"
		n.Pods, n.Used = []planning.PodClass{planningtest.NewPods("running", 2, "1", "64Mi")}, n.Allocatable
	})}
	if got := perZone(solve(t, batch)); got["a"] != 2 || got["b"] != 2 {
		t.Errorf("pods by zone %v, want 2 in each zone without running pods", got)
	}
}
