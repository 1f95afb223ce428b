package conditions_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// published returns a slice of a pool of the node n.
func published(driver string, generation, count int64) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "pool", Generation: generation, ResourceSliceCount: count},
	}}
}

// A node waits until each requested driver has published a complete pool, as in upstream's specs (a)
// to (d).
func TestFindMissingDriver(t *testing.T) {
	const gpu, nic = "gpu.nvidia.com", "dra.net"
	type slices = []*resourcev1.ResourceSlice
	owned := published(gpu, 1, 1)
	owned.Spec.NodeName, owned.OwnerReferences = nil, []metav1.OwnerReference{{Kind: "Node", Name: "n"}}
	elsewhere := published(gpu, 1, 1)
	elsewhere.Spec.NodeName = new("other")
	everywhere := published(gpu, 1, 1)
	everywhere.Spec.NodeName, everywhere.Spec.AllNodes = nil, new(true)
	second := published(gpu, 1, 1)
	second.Spec.Pool.Name = "complete"
	for _, tt := range []struct {
		name, drivers string
		slices        slices
		want          string
	}{
		{"no annotation", "", nil, ""},
		{"only separators", " , ", nil, ""},
		{"nothing is published", gpu, nil, gpu},
		{"a complete pool", gpu, slices{published(gpu, 1, 1)}, ""},
		{"a complete pool of two slices", gpu, slices{published(gpu, 1, 2), published(gpu, 1, 2)}, ""},
		{"an incomplete pool", gpu, slices{published(gpu, 1, 2)}, gpu},
		{"one of two pools is complete", gpu, slices{published(gpu, 1, 2), second}, ""},
		{"the newer generation is incomplete", gpu, slices{published(gpu, 1, 1), published(gpu, 2, 2)}, gpu},
		{"slices of an older generation do not count", gpu, slices{published(gpu, 2, 2), published(gpu, 1, 2)}, gpu},
		{"a pool without a count", gpu, slices{published(gpu, 1, 0)}, gpu},
		{"another driver's pool", gpu, slices{published(nic, 1, 1)}, gpu},
		{"one of two drivers", nic + ", " + gpu, slices{published(nic, 1, 1)}, gpu},
		{"both drivers", nic + ", " + gpu, slices{published(nic, 1, 1), published(gpu, 1, 1)}, ""},
		{"by the owner", gpu, slices{owned}, ""},
		{"another node's devices", gpu, slices{elsewhere}, gpu},
		{"devices of all nodes", gpu, slices{everywhere}, gpu},
	} {
		claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{karpenter.DRADriversAnnotationKey: tt.drivers}}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		if got := conditions.FindMissingDriver(claim, node, tt.slices); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
