package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// deviceCluster has a Deployment of two pods with a claim for one GPU each, and instance types with
// and without GPUs.
func deviceCluster(t *testing.T, on bool) *embedded.EmbeddedCluster {
	t.Helper()
	gpu := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
	}}}
	w, err := embedded.New(embedded.Options{
		Seed: 1, Region: "us-west-2", Families: []string{"m6i", "g4dn"},
		Devices: on, Gates: planning.Gates{DRANVIDIAGPU: on}, ClaimTemplates: map[string]resourcev1.ResourceClaimSpec{"one-gpu": gpu},
	})
	if err != nil {
		t.Fatal(err)
	}
	class, train, _ := nodeClassAndDeployment(w)
	train.Spec.Replicas = new(int32(2))
	spec := &train.Spec.Template.Spec
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
	spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	gpus := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}}
	gpus.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}
	if err := w.Apply(context.Background(), class, strictNodePool(), gpus, train); err != nil {
		t.Fatal(err)
	}
	return w
}

// Without planning of devices, a pod with claims gets an Event with the reason, and no node is
// launched for it.
func TestPodsWithClaimsGetEventsWithoutDevices(t *testing.T) {
	w := deviceCluster(t, false)
	if _, err := w.Run(context.Background(), 10*time.Minute, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), w.Kube, cluster.NodeClaims)
	if err != nil || len(claims) != 0 {
		t.Errorf("%d NodeClaims, %v", len(claims), err)
	}
	reported := map[string]bool{}
	for _, e := range w.Kube.Events() {
		if e.Kind == cluster.Pods && e.Reason == karpenter.ReasonFailedScheduling && strings.Contains(e.Message, "IGNORE_DRA_REQUESTS") {
			reported[e.About.GetName()] = true
		}
	}
	if len(reported) != 2 {
		t.Errorf("pods with an Event: %v, want both pods", reported)
	}
}
