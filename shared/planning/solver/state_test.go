package solver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestStaticPoolsAreFilled launches the nodes that a static pool lacks, in addition to those for pods.
func TestStaticPoolsAreFilled(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "500m", "64Mi"))
	batch.Snapshot.Settings.Gates.StaticCapacity = true
	static := planningtest.NewNodePool()
	static.Name, static.Spec.Replicas = "static", new(int64(3))
	batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, static)
	batch.Snapshot.Nodes = []planning.Node{node("there", func(n *planning.Node) { n.NodePool, n.Allocatable = "static", nil })}
	result := solver.Solve(batch, planningtest.NewCatalogue())
	empty := 0
	for _, n := range result.Nodes {
		if n.NodePool == "static" && len(n.Pods) == 0 && len(n.Offerings) > 0 && n.Offerings[0].PricePerHour == n.PricePerHour {
			empty++
		}
	}
	if empty != 2 || len(result.Nodes) != 3 || len(result.Unplaced) > 0 {
		t.Errorf("%d static nodes of %d, want 2 missing ones and one for the pod", empty, len(result.Nodes))
	}
}

// TestBufferPodsComeLast checks that buffer pods never take capacity from real pods, even if they are
// larger.
func TestBufferPodsComeLast(t *testing.T) {
	buffer := planningtest.NewPods("buffer", 3, "3", "64Mi", func(s *planning.PodSpec) { s.Priority = planning.BufferPriority })
	batch := planningtest.NewBatch(buffer, planningtest.NewPods("web", 4, "900m", "64Mi"))
	batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("8")}
	result := solver.Solve(batch, planningtest.NewCatalogue())
	for _, u := range result.Unplaced {
		if u.Pods[0].Name[:3] == "web" {
			t.Errorf("%d real pods are unplaced", len(u.Pods))
		}
	}
	if count(result.Unplaced) == 0 {
		t.Error("everything fits, so the test cannot fail")
	}
}

// TestPriority gives the limited capacity to the pods of higher priority, if PlanByPriority is set.
func TestPriority(t *testing.T) {
	for _, by := range []bool{false, true} {
		small := planningtest.NewPods("small", 2, "1500m", "64Mi", func(s *planning.PodSpec) { s.Priority = 1000 })
		batch := planningtest.NewBatch(planningtest.NewPods("large", 2, "1900m", "64Mi"), small)
		batch.Snapshot.Settings.PlanByPriority = by
		batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("4")}
		left := map[string]int{}
		for _, u := range solver.Solve(batch, planningtest.NewCatalogue()).Unplaced {
			left[u.Pods[0].Name[:5]] += len(u.Pods)
		}
		if by && left["small"] > 0 {
			t.Errorf("by priority %t: unplaced %v", by, left)
		}
		if left["small"]+left["large"] == 0 {
			t.Error("everything fits, so the test cannot fail")
		}
	}
}

// TestFreeIPsLimitPlan keeps nodes out of zones whose subnets have no free addresses, for them and for
// the pods that use the same subnet.
func TestFreeIPsLimitPlan(t *testing.T) {
	for _, tt := range []struct {
		name          string
		free          map[string]int64
		left          int
		podsElsewhere bool
	}{
		{"enough", map[string]int64{"ap-northeast-2a": 100}, 0, false},
		{"addresses for some nodes", map[string]int64{"ap-northeast-2a": 4}, 3, false},
		{"none", map[string]int64{"ap-northeast-2a": 0}, 5, false},
		{"not counted", nil, 0, false},
		{"one address, and pods use other subnets", map[string]int64{"ap-northeast-2a": 1}, 0, true},
		{"none, and pods use other subnets", map[string]int64{"ap-northeast-2a": 0}, 5, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(planningtest.NewPods("web", 5, "100m", "64Mi"))
			batch.Snapshot.PodsUseNodeSubnets = !tt.podsElsewhere
			stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
			stock.FreeIPs = map[string]map[string]int64{"default": tt.free}
			result := solver.SolveWithTypes(batch, stock)
			taken := 0
			for _, n := range result.Nodes {
				taken += int(batch.Snapshot.CountAddresses(int64(len(n.Pods))))
			}
			if free, counted := tt.free["ap-northeast-2a"]; counted && int64(taken) > free {
				t.Errorf("%d addresses used of %d", taken, free)
			}
			if got := count(result.Unplaced); got > tt.left || (tt.left > 0) != (got > 0) {
				t.Errorf("%d unplaced pods, want at most %d: %+v", got, tt.left, result.Unplaced)
			}
		})
	}
}
