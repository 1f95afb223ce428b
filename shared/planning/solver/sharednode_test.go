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

// watching spreads over zones by other pods alone.
func watching(skew int32, app string) func(*planning.PodSpec) {
	return spreads(zoneKey, skew, func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector, c.MinDomains = selector("app", app), new(int32(4))
	})
}

// TestFlock places pods that must share one node, and that somebody counts by zone,
// where one node can hold them all: that is one zone only, and neither the first
// nor the last.
func TestFlock(t *testing.T) {
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
		t.Errorf("pods by zone: %v, unplaced: %+v", got, result.Unplaced)
	}
}

// TestWatchersFirst places pods that are spread by others, and not by themselves,
// before those become too many everywhere.
func TestWatchersFirst(t *testing.T) {
	together := affine(corev1.PodAffinityTerm{TopologyKey: karpenter.CapacityTypeLabelKey, LabelSelector: selector("app", "web")})
	result := solve(t, inZones(
		planningtest.NewPods("big", 20, "900m", "64Mi", requireLabels("app", "web"), together),
		planningtest.NewPods("watch", 1, "100m", "64Mi", watching(1, "web"))))
	if len(result.Unplaced) > 0 {
		t.Errorf("unplaced: %+v", result.Unplaced)
	}
}

// TestLimitsOnCountedPodsAreCheap leaves out pods that somebody counts by zone: once
// they found no room anywhere, they are not tried again and again.
func TestLimitsOnCountedPodsAreCheap(t *testing.T) {
	batch := inZones(
		planningtest.NewPods("big", 20, "1", "64Mi", requireLabels("app", "web")),
		planningtest.NewPods("watch", 1, "100m", "64Mi", watching(5, "web")))
	batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("2")}
	stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
	if left := countUnplaced(solver.SolveWithTypes(batch, stock)); left == 0 {
		t.Fatal("every pod has found a place, and so this tries nothing")
	}
	if steps := solver.FirstSteps(batch, stock); steps > 50e3 {
		t.Errorf("planning took %d steps", steps)
	}
}
