package collect

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// describeDaemonSets returns the pod spec that each DaemonSet adds to a node. It uses the newest
// running pod if there is one, because admission may have changed the template's spec, or a resize
// the pod's. It leaves out a DaemonSet whose spec is too large for documents, so new nodes have no
// capacity for it, and one with ResourceClaims if devices are not planned, as Karpenter does.
func (c *collector) describeDaemonSets(live map[types.UID]*corev1.Pod) []planning.PodSpec {
	var out []planning.PodSpec
	for _, set := range cluster.ListCached[*appsv1.DaemonSet](c.cache, cluster.DaemonSets) {
		pod := live[set.UID]
		if pod == nil {
			pod = &corev1.Pod{Spec: set.Spec.Template.Spec}
			pod.Namespace, pod.Labels = set.Namespace, set.Spec.Template.Labels
		}
		spec := podspec.Daemon(withTemplateAffinity(pod, set), c.labelKeys)
		if podspec.Oversize(spec) || spec.ResourceClaims > 0 && c.claims == nil {
			continue
		}
		out = append(out, spec)
	}
	return out
}

// withTemplateAffinity returns the pod with the required node affinity of its DaemonSet's template.
// The DaemonSet controller replaces the affinity of each pod by the pod's own node (Karpenter:
// pkg/controllers/provisioning/provisioner.go, getDaemonSetPods).
func withTemplateAffinity(pod *corev1.Pod, set *appsv1.DaemonSet) *corev1.Pod {
	affinity := set.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return pod
	}
	out := *pod
	out.Spec.Affinity = &corev1.Affinity{}
	if pod.Spec.Affinity != nil {
		*out.Spec.Affinity = *pod.Spec.Affinity
	}
	nodes := &corev1.NodeAffinity{}
	if out.Spec.Affinity.NodeAffinity != nil {
		*nodes = *out.Spec.Affinity.NodeAffinity
	}
	nodes.RequiredDuringSchedulingIgnoredDuringExecution = affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	out.Spec.Affinity.NodeAffinity = nodes
	return &out
}

// newestByDaemonSet returns the newest pod of each DaemonSet that is neither terminating nor
// finished; if several are equally old, the first by name.
func newestByDaemonSet(pods []*corev1.Pod) map[types.UID]*corev1.Pod {
	out := map[types.UID]*corev1.Pod{}
	for _, pod := range pods {
		if !isDaemon(pod) || pod.DeletionTimestamp != nil || isFinished(pod) {
			continue
		}
		set := metav1.GetControllerOf(pod).UID
		if other := out[set]; other == nil || other.CreationTimestamp.Before(&pod.CreationTimestamp) {
			out[set] = pod
		}
	}
	return out
}

func isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.APIVersion == "apps/v1" && owner.Kind == "DaemonSet"
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
