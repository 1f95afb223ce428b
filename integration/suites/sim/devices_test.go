package sim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// publishDelay is from a node's Ready to the ResourceSlices of its driver.
const publishDelay = 30 * time.Second

// deviceCluster has a Deployment of two pods with a claim for one GPU each, and instance types with
// and without GPUs.
func deviceCluster(t *testing.T, on bool) *embedded.EmbeddedCluster {
	t.Helper()
	gpu := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
	}}}
	slow := memworkload.Typical("", nil)
	slow.PublishAfter = publishDelay
	w, err := embedded.New(embedded.Options{
		Seed: 1, Region: "us-west-2", Families: []string{"m6i", "g4dn"}, Workload: &slow,
		Devices: on, Gates: planning.Gates{DRANVIDIAGPU: on}, ClaimTemplates: map[string]resourcev1.ResourceClaimSpec{"one-gpu": gpu},
	})
	if err != nil {
		t.Fatal(err)
	}
	image := w.Cloud.AddImage(cloud.Image{Name: "amazon-eks-node-al2023-x86_64-nvidia", Arch: "amd64", Owner: "amazon"})
	w.Cloud.SetParameter("/aws/service/eks/optimized-ami/"+memcloud.KubernetesVersion+"/amazon-linux-2023/x86_64/nvidia/recommended/image_id", image.ID)
	class, train, _ := nodeClassAndDeployment(w)
	train.Spec.Replicas = new(int32(2))
	spec := &train.Spec.Template.Spec
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}}
	spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	gpus := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}}
	gpus.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}
	pool := strictNodePool()
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
	}
	pool.Spec.Disruption = karpenter.Disruption{
		ConsolidationPolicy: karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: karpenter.NillableDuration{Duration: new(time.Minute)},
		Budgets: []karpenter.Budget{{Nodes: "100%"}},
	}
	if err := w.Apply(context.Background(), class, pool, gpus, train); err != nil {
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

// With planning of devices, pods with claims get nodes with GPUs and run there, through all services. The
// nodes are initialized once their drivers have published the devices, and stay until a pod is gone.
func TestPodsWithClaimsGetDevices(t *testing.T) {
	w := deviceCluster(t, true)
	run := func(d time.Duration) (names []string) {
		t.Helper()
		if _, err := w.Run(context.Background(), d, func() bool { return false }); err != nil {
			t.Fatal(err)
		}
		claims, err := cluster.List[*karpenter.NodeClaim](t.Context(), w.Kube, cluster.NodeClaims)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range claims {
			names = append(names, claim.Name)
			initialized, _ := claim.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
			node, err := cluster.Get[*corev1.Node](t.Context(), w.Kube, cluster.Nodes, cluster.Key{Name: claim.Status.NodeName})
			if err != nil {
				t.Fatal(err)
			}
			if drivers := claim.Annotations[karpenter.DRADriversAnnotationKey]; drivers != "gpu.nvidia.com" || !strings.HasPrefix(node.Labels[corev1.LabelInstanceTypeStable], "g4dn.") {
				t.Errorf("NodeClaim %s has type %s and drivers %q", claim.Name, node.Labels[corev1.LabelInstanceTypeStable], drivers)
			}
			if waited := initialized.LastTransitionTime.Sub(node.CreationTimestamp.Time); initialized.Status != metav1.ConditionTrue || waited < publishDelay {
				t.Errorf("NodeClaim %s: Initialized %s after %s, want after the driver's %s", claim.Name, initialized.Status, waited, publishDelay)
			}
		}
		return names
	}
	first := run(10 * time.Minute)
	pods, err := cluster.List[*corev1.Pod](t.Context(), w.Kube, cluster.Pods)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s is %s: %+v", pod.Name, pod.Status.Phase, pod.Status.Conditions)
		}
	}
	if len(pods) != 2 || len(first) == 0 {
		t.Fatalf("%d pods, %d NodeClaims", len(pods), len(first))
	}
	if later := run(time.Hour); !slices.Equal(first, later) {
		t.Errorf("NodeClaims %v became %v although nothing changed", first, later)
	}
	w.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: "web"}, func(o cluster.Object) { o.(*appsv1.Deployment).Spec.Replicas = new(int32(1)) })
	if left := run(time.Hour); len(left) != 1 {
		t.Errorf("NodeClaims %v for one pod with one GPU", left)
	}
}
