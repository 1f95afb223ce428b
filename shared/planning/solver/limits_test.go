package solver_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestReachedLimitsAreCheap plans pods that limits mostly leave unplaced. A reached limit stays
// reached, and the same pods come with each batch, so they must not cost many times the work of an
// unlimited plan.
func TestReachedLimitsAreCheap(t *testing.T) {
	batch := benchBatch(newDrawing().mixed(1000))
	stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
	batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	if left := countUnplaced(solver.SolveWithTypes(batch, stock)); left == 0 {
		t.Fatal("every pod was placed, so the test cannot fail")
	}
	if steps := solver.FirstSteps(batch, stock); steps > 200e6 {
		t.Errorf("planning took %d steps", steps)
	}
}

// TestLimitsCountRemainingNodes plans for a pool whose two nodes reach its limits.
func TestLimitsCountRemainingNodes(t *testing.T) {
	strict := func(s *planning.Snapshot) {
		s.NodePools[0].Annotations = map[string]string{policy.Limits: "strict"}
	}
	for _, tt := range []struct {
		name string
		edit func(*planning.Snapshot)
		// removed are the nodes to remove, and come is the number of new nodes.
		removed []int
		come    int
	}{
		{"both nodes stay", func(*planning.Snapshot) {}, nil, 0},
		{"one is being deleted", func(s *planning.Snapshot) { s.Nodes[1].MarkedForDeletion = true }, nil, 1},
		{"one is being replaced", func(s *planning.Snapshot) {
			s.Nodes[1].Proposal = &planning.Proposal{ID: "p", ConfirmedAt: planningtest.Now}
		}, nil, 1},
		{"one has a proposal", func(s *planning.Snapshot) {
			s.Nodes[1].Proposal = &planning.Proposal{ID: "p"}
		}, nil, 0},
		{"one is being deleted, strict limits", func(s *planning.Snapshot) { s.Nodes[1].MarkedForDeletion = true; strict(s) }, nil, 0},
		{"an invalid annotation", func(s *planning.Snapshot) {
			s.Nodes[1].MarkedForDeletion = true
			s.NodePools[0].Annotations = map[string]string{policy.Limits: "loose"}
		}, nil, 0},
		{"simulated removal of one", func(*planning.Snapshot) {}, []int{1}, 1},
		{"simulated removal of one, strict limits", strict, []int{1}, 0},
	} {
		for _, limits := range []karpenter.Limits{
			{corev1.ResourceCPU: resource.MustParse("4")}, {karpenter.ResourceNodes: resource.MustParse("2")},
		} {
			t.Run(fmt.Sprint(tt.name, ", ", slices.Collect(maps.Keys(limits))), func(t *testing.T) {
				full := func(name string) planning.PodClass { return planningtest.NewPods(name, 1, "1500m", "1Gi") }
				batch := planningtest.NewBatch(full("pending"))
				small := func(n *planning.Node) { n.Capacity = planningtest.NewRequests("2", "8Gi") }
				batch.Snapshot.Nodes = []planning.Node{node("a", small, running(full("a"))), node("b", small, running(full("b")))}
				batch.Snapshot.NodePools[0].Spec.Limits = limits
				tt.edit(&batch.Snapshot)
				stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
				got := solver.SolveWithTypes(batch, stock)
				if tt.removed != nil {
					got = solver.NewSimulation(batch.Snapshot, stock).SimulateRemoval(tt.removed...)
				}
				if len(got.Nodes) != tt.come {
					t.Errorf("%d new nodes: %+v", len(got.Nodes), got)
				}
			})
		}
	}
}
