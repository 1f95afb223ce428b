package memworkload_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
)

// oneGPU is the spec of a claim for one device of the class gpu.
var oneGPU = resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
	{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
}}}

// A pod waits for its claim and for a node whose driver has published a free device. A device is free
// again once its pod is gone.
func TestDevices(t *testing.T) {
	options := memworkload.Options{JoinAfter: time.Second, PublishAfter: 10 * time.Second, ClaimTemplates: map[string]resourcev1.ResourceClaimSpec{"one-gpu": oneGPU}}
	options.Machine = func(name string) (memworkload.Machine, bool) {
		m, ok := machines(name)
		m.Devices = []catalog.DeviceTemplate{{Driver: "gpu.example.com", Devices: []resourcev1.Device{{Name: "gpu-0"}}}}
		return m, ok
	}
	w := newWorld(t, options)
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	train := deployment(2, "100m")
	train.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
	train.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	w.server.SeedObjects(node("plain"), class, train)
	w.kube.Boot(w.now, boot("i-1"))
	w.run(8 * time.Second)
	w.want(map[string]int{"Pending": 2})
	w.run(10 * time.Second)
	running := func() string {
		var on strings.Builder
		for _, pod := range w.pods() {
			if pod.Status.Phase == corev1.PodRunning {
				on.WriteString(pod.Name + " on " + pod.Spec.NodeName)
			}
		}
		return on.String()
	}
	first := running()
	slices, err := cluster.List[*resourcev1.ResourceSlice](t.Context(), w.server, cluster.ResourceSlices)
	if err != nil || len(slices) != 1 || first == "" {
		t.Fatalf("running: %q, %d slices, %v", first, len(slices), err)
	}
	for _, pod := range w.pods() {
		if pod.Status.Phase == corev1.PodRunning {
			if err := w.server.Delete(t.Context(), cluster.Pods, cluster.KeyOf(pod), pod.UID); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.run(time.Minute)
	if next := running(); next == first || next == "" {
		t.Errorf("running: %q after %q was deleted", next, first)
	}
	claims, err := cluster.List[*resourcev1.ResourceClaim](t.Context(), w.server, cluster.ResourceClaims)
	allocated := 0
	for _, claim := range claims {
		if claim.Status.Allocation != nil {
			allocated++
		}
	}
	if err != nil || allocated != 1 || len(claims) != 2 {
		t.Errorf("%d claims, of which %d are allocated, %v; want 2 and 1", len(claims), allocated, err)
	}
}
