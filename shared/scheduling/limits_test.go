package scheduling_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
	"github.com/joist-autoscaler/joist/shared/scheduling/schedulingtest"
)

// TestReachedLimitsAreCheap plans pods of which limits leave most out. A limit that
// is reached stays so, and the same pods come with each batch: they must not cost
// many times what they cost without it.
func TestReachedLimitsAreCheap(t *testing.T) {
	batch := benchBatch(newDrawing().mixed(1000))
	stock := scheduling.NewStock(batch.Snapshot, schedulingtest.Catalogue())
	batch.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	if left := unplaced(scheduling.SolveStock(batch, stock)); left == 0 {
		t.Fatal("every pod has found a place, and so this tries nothing")
	}
	if steps := scheduling.FirstSteps(batch, stock); steps > 200e6 {
		t.Errorf("planning took %d steps", steps)
	}
}
