package solver_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestRequestsKeepTheirText checks that the requests of a planned node have the same text after a client read and wrote
// them: the spec of a NodeClaim is immutable, and the API server compares texts.
func TestRequestsKeepTheirText(t *testing.T) {
	for _, memory := range []string{"100M", "1.8G", "128Mi", "1500", "1025", "3Gi"} {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "1500m", memory))
		batch.Pending[0].Spec.Requests[corev1.ResourceEphemeralStorage] = batch.Pending[0].Spec.Requests[corev1.ResourceMemory]
		batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = nil
		types := market()
		types.ByNodeClass[planningtest.NewNodeClass().Name][0].Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse("20Gi")
		result := solver.SolveWithTypes(batch, types)
		if len(result.Nodes) != 1 {
			t.Fatalf("%s: planned %d nodes: %v", memory, len(result.Nodes), result.Unplaced)
		}
		written, err := json.Marshal(result.Nodes[0].Requests)
		if err != nil {
			t.Fatal(err)
		}
		var read corev1.ResourceList
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(read); err != nil || string(again) != string(written) {
			t.Errorf("%s: %s becomes %s (%v)", memory, written, again, err)
		}
	}
}
