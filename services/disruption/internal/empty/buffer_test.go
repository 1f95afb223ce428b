package empty

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Empty nodes on which a buffer keeps room stay (B127).
func TestBuffersB127(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount), corev1.ResourcePods: resource.MustParse("1")}
	}
	a, b := idleNode("a"), idleNode("b")
	a.Allocatable, b.Allocatable = cpu("2"), cpu("2")
	s := snapshot(pool(), a, b)
	s.Buffers = []scheduling.Buffer{{Namespace: "shop", Name: "spare", UID: "u", Replicas: new(int32(1)), Spec: scheduling.PodSpec{Requests: cpu("1")}}}
	if got := Find(s); len(got) != 2 {
		t.Errorf("with the gate off, %d of two may go", len(got))
	}
	s.Settings.Gates.CapacityBuffer = true
	if got := Find(s); len(got) != 1 {
		t.Errorf("%d of two may go, want the one without the buffer", len(got))
	}
}
