package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func container(amount string, restart *corev1.ContainerRestartPolicy) corev1.Container {
	return corev1.Container{Name: "c", RestartPolicy: restart, Resources: corev1.ResourceRequirements{Requests: cpu(amount)}}
}

func requires(t *testing.T, pod *corev1.Pod, want string) {
	t.Helper()
	requests := podspec.Requests(pod)
	if got := requests[corev1.ResourceCPU]; got.Cmp(resource.MustParse(want)) != 0 {
		t.Errorf("cpu = %s, want %s", got.String(), want)
	}
	if pods := requests[corev1.ResourcePods]; pods.Value() != 1 {
		t.Errorf("pods = %s, want 1", pods.String())
	}
}

func TestRequests(t *testing.T) {
	sidecar := new(corev1.ContainerRestartPolicyAlways)
	for _, tt := range []struct {
		name       string
		init, main []corev1.Container
		overhead   corev1.ResourceList
		want       string
	}{
		{"container requests are added", nil, []corev1.Container{container("1", nil), container("500m", nil)}, nil, "1500m"},
		{"a larger init container determines the requests", []corev1.Container{container("3", nil)}, []corev1.Container{container("1", nil)}, nil, "3"},
		{"a smaller init container does not matter", []corev1.Container{container("1", nil)}, []corev1.Container{container("2", nil)}, nil, "2"},
		{"only the largest init container matters", []corev1.Container{container("2", nil), container("3", nil)}, []corev1.Container{container("1", nil)}, nil, "3"},
		{"a sidecar adds to the containers", []corev1.Container{container("1", sidecar)}, []corev1.Container{container("1", nil)}, nil, "2"},
		{"a sidecar adds to later init containers", []corev1.Container{container("1", sidecar), container("2", nil)}, []corev1.Container{container("1", nil)}, nil, "3"},
		{"a sidecar does not add to earlier init containers", []corev1.Container{container("2", nil), container("1", sidecar)}, []corev1.Container{container("1", nil)}, nil, "2"},
		{"sidecar requests are added", []corev1.Container{container("1", sidecar), container("1", sidecar)}, []corev1.Container{container("1", nil)}, nil, "3"},
		{"overhead", nil, []corev1.Container{container("1", nil)}, cpu("100m"), "1100m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requires(t, &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tt.init, Containers: tt.main, Overhead: tt.overhead}}, tt.want)
		})
	}
}

// TestRequestsOfResizedPods checks that a pod counts with the larger of the old and the new amount
// until its resize is done, and with the old amount if the resize is infeasible.
func TestRequestsOfResizedPods(t *testing.T) {
	infeasible := []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	for _, tt := range []struct {
		name                     string
		asked, allotted, inForce string
		conditions               []corev1.PodCondition
		want                     string
	}{
		{"no resize", "1", "1", "1", nil, "1"},
		{"resize to more requested", "3", "1", "1", nil, "3"},
		{"more allocated than requested", "2", "3", "1", nil, "3"},
		{"resize to less in progress", "1", "1", "3", nil, "3"},
		{"infeasible resize", "9", "1", "1", infeasible, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(tt.asked, nil)}}}
			pod.Status.Conditions = tt.conditions
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "c", AllocatedResources: cpu(tt.allotted), Resources: &corev1.ResourceRequirements{Requests: cpu(tt.inForce)},
			}}
			requires(t, pod, tt.want)
		})
	}
	t.Run("pod-level resources", func(t *testing.T) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("1", nil)}, Resources: &corev1.ResourceRequirements{Requests: cpu("2")},
		}}
		requires(t, pod, "2")
		pod.Status.AllocatedResources, pod.Status.Resources = cpu("3"), &corev1.ResourceRequirements{Requests: cpu("1")}
		requires(t, pod, "3")
	})
}

// TestSetDefaultsOfPodResources checks the requests of templates with pod-level limits, whole and trimmed
// (Kubernetes: pkg/apis/core/v1/defaults.go, defaultPodRequests).
func TestSetDefaultsOfPodResources(t *testing.T) {
	const pages = corev1.ResourceHugePagesPrefix + "2Mi"
	type lists map[corev1.ResourceName]string
	amounts := func(in lists) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, amount := range in {
			out[name] = resource.MustParse(amount)
		}
		return out
	}
	for _, tt := range []struct {
		name                   string
		podRequests, podLimits lists
		requests, limits, want lists
	}{
		{"only pod-level limits", nil, lists{"cpu": "2", "memory": "4Gi"}, nil, nil, lists{"cpu": "2", "memory": "4Gi"}},
		{"a pod-level request stays", lists{"cpu": "1"}, lists{"cpu": "2", "memory": "4Gi"}, nil, nil, lists{"cpu": "1", "memory": "4Gi"}},
		{"containers' requests come before the pod-level limit", nil, lists{"cpu": "2", "memory": "4Gi"}, lists{"cpu": "500m"}, nil, lists{"cpu": "500m", "memory": "4Gi"}},
		{"containers' limits become their requests first", nil, lists{"cpu": "2", "memory": "4Gi"}, nil, lists{"memory": "1Gi"}, lists{"cpu": "2", "memory": "1Gi"}},
		{"a container that requests zero", nil, lists{"cpu": "2"}, lists{"cpu": "0"}, nil, nil},
		{"the pod-level limit of huge pages comes before containers' requests", nil, lists{pages: "8Mi"}, nil, lists{pages: "4Mi"}, lists{pages: "8Mi"}},
		{"without pod-level limits", lists{"cpu": "1"}, nil, lists{"memory": "1Gi"}, nil, lists{"cpu": "1", "memory": "1Gi"}},
		{"a limit that is not supported for pods", nil, lists{corev1.ResourceEphemeralStorage: "1Gi"}, lists{"cpu": "1"}, nil, lists{"cpu": "1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts(tt.requests), Limits: amounts(tt.limits)}}},
				Resources:  &corev1.ResourceRequirements{Requests: amounts(tt.podRequests), Limits: amounts(tt.podLimits)},
			}}
			check := func(how string, got corev1.ResourceList) {
				t.Helper()
				delete(got, corev1.ResourcePods)
				if diff := cmp.Diff(amounts(tt.want), got); diff != "" {
					t.Errorf("%s: %s", how, diff)
				}
			}
			check("whole template", podspec.Daemon(&corev1.Pod{Spec: template.Spec}, nil).Requests)
			podspec.TrimTemplate(&template)
			check("trimmed template", podspec.Daemon(&corev1.Pod{Spec: template.Spec}, nil).Requests)
			pod := &corev1.Pod{Spec: template.Spec}
			podspec.Trim(pod)
			check("trimmed pod", podspec.Daemon(pod, nil).Requests)
		})
	}
}
