package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Trim drops all parts of a pod that this package does not read, so that a cache of 100,000 pods fits
// into memory. Every function here returns the same for the pod before and after. The containers
// become one with the pod's requests, including resizes. Trimming a pod twice changes nothing.
func Trim(pod *corev1.Pod) {
	// Compute the requests while the pod is complete.
	spec := trimmedSpec(pod)
	*pod = corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: pod.Labels, Annotations: only(pod.Annotations, readAnnotations), OwnerReferences: owners(pod.OwnerReferences),
		},
		Status: trimmedStatus(pod),
		Spec:   spec,
	}
}

// readAnnotations are the pod annotations that affect planning.
var readAnnotations = []string{karpenter.DoNotDisruptAnnotationKey, karpenter.DisruptionCostAnnotationKey, corev1.PodDeletionCost, corev1.MirrorPodAnnotationKey}

// only returns the entries of a map with one of the keys, or nil.
func only(from map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, ok := from[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

func owners(from []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(from)
	for i := range out {
		out[i].BlockOwnerDeletion = nil
	}
	return out
}

func trimmedSpec(pod *corev1.Pod) corev1.PodSpec {
	spec := &pod.Spec
	out := corev1.PodSpec{
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, Priority: spec.Priority,
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		ResourceClaims:                spec.ResourceClaims,
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			out.Volumes = append(out.Volumes, *v)
		}
	}
	if undefaulted(spec) {
		trimContainers(spec)
		out.Containers, out.InitContainers = spec.Containers, spec.InitContainers
		out.Overhead, out.Resources, out.HostNetwork = spec.Overhead, spec.Resources, spec.HostNetwork
		return out
	}
	var takes amounts
	takes.read(pod)
	takes = slices.DeleteFunc(takes, func(a amount) bool { return a.name == corev1.ResourcePods })
	one := corev1.Container{Resources: corev1.ResourceRequirements{Requests: takes.list()}}
	for _, port := range appendHostPorts(nil, spec) {
		one.Ports = append(one.Ports, corev1.ContainerPort{HostIP: port.IP, HostPort: port.Port, Protocol: port.Protocol})
	}
	out.Containers = []corev1.Container{one}
	return out
}

// undefaulted reports whether SetDefaults would change the pod. The containers of such a pod are kept
// separate.
func undefaulted(spec *corev1.PodSpec) bool {
	return len(missingPodRequests(spec)) > 0 || slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
		for name := range c.Resources.Limits {
			if _, asked := c.Resources.Requests[name]; !asked {
				return true
			}
		}
		return spec.HostNetwork && slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort == 0 })
	})
}

// trimContainers keeps the fields of containers that affect requests and ports.
func trimContainers(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
}

func trimmedStatus(pod *corev1.Pod) corev1.PodStatus {
	status := &pod.Status
	out := corev1.PodStatus{Phase: status.Phase, NominatedNodeName: status.NominatedNodeName}
	if _, timed := pod.Annotations[karpenter.DoNotDisruptAnnotationKey]; timed {
		out.StartTime = status.StartTime
	}
	for _, claim := range status.ResourceClaimStatuses {
		out.ResourceClaimStatuses = append(out.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: claim.Name, ResourceClaimName: claim.ResourceClaimName})
	}
	apart := undefaulted(&pod.Spec)
	if apart {
		out.ContainerStatuses, out.InitContainerStatuses = resized(status.ContainerStatuses), resized(status.InitContainerStatuses)
		out.Resources, out.AllocatedResources = status.Resources, status.AllocatedResources
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		bad := c.Status == corev1.ConditionFalse && (c.Type == corev1.PodScheduled || c.Type == corev1.PodReady)
		if bad || apart && c.Type == corev1.PodResizePending {
			out.Conditions = append(out.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	return out
}

// resized keeps the fields of container statuses that describe a resize.
func resized(from []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range from {
		out = append(out, corev1.ContainerStatus{Name: from[i].Name, Resources: from[i].Resources, AllocatedResources: from[i].AllocatedResources})
	}
	return out
}

// TrimTemplate drops the parts of a workload's template that ConvertBuffer and Daemon do not read.
func TrimTemplate(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	trimContainers(spec)
	*template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: template.Labels, Annotations: only(template.Annotations, readAnnotations)},
		Spec: corev1.PodSpec{
			Containers: spec.Containers, InitContainers: spec.InitContainers, Overhead: spec.Overhead, Resources: spec.Resources,
			HostNetwork: spec.HostNetwork, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
			TopologySpreadConstraints: spec.TopologySpreadConstraints, Priority: spec.Priority,
			TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds, ResourceClaims: spec.ResourceClaims,
		},
	}
}
