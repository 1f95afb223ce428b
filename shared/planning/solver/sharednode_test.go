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
