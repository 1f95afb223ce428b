package podspec

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// defaultGraceSeconds is the default of Kubernetes.
const defaultGraceSeconds = 30

// Convert returns the part of a pod that planning reads. It keeps labels with a key in keys; volumes
// is the result of Volumes for the pod.
func Convert(pod *corev1.Pod, keys SelectorKeys, volumes []planning.Volume) planning.PodSpec {
	var d draft
	d.read(pod, keys, volumes)
	return d.finish()
}

// CostAnnotation returns the eviction cost that a pod's annotation states: karpenter.sh/disruption-cost
// if it is present, also if it is no number; else controller.kubernetes.io/pod-deletion-cost, unless
// managed reports that lifecycle writes the latter.
func CostAnnotation(pod *corev1.Pod, managed bool) string {
	if stated, present := pod.Annotations[karpenter.DisruptionCostAnnotationKey]; present || managed {
		return stated
	}
	return pod.Annotations[corev1.PodDeletionCost]
}

// draft is a pod's spec before it is known whether an equal one exists: its maps are lists and its
// lists are shared, so that another pod of a known class allocates nothing.
type draft struct {
	// spec has no labels, requests and host ports.
	spec     planning.PodSpec
	labels   pairs
	requests amounts
	ports    []planning.HostPort
}

// read sets the draft from a pod.
func (d *draft) read(pod *corev1.Pod, keys SelectorKeys, volumes []planning.Volume) {
	spec := &pod.Spec
	d.spec = planning.PodSpec{
		Namespace:      pod.Namespace,
		OwnerKind:      ownerKind(pod),
		NodeSelector:   spec.NodeSelector,
		Affinity:       spec.Affinity,
		Tolerations:    spec.Tolerations,
		Spread:         spec.TopologySpreadConstraints,
		DefaultSpread:  pod.Annotations[defaultSpreadAnnotation] != "",
		Volumes:        volumes,
		Priority:       valueOr(spec.Priority, 0),
		GraceSeconds:   valueOr(spec.TerminationGracePeriodSeconds, defaultGraceSeconds),
		ResourceClaims: len(spec.ResourceClaims),
		DoNotDisrupt:   pod.Annotations[karpenter.DoNotDisruptAnnotationKey],
		DeletionCost:   CostAnnotation(pod, false),
	}
	d.labels = keys.pick(pod.Labels, d.labels[:0])
	d.labels.sort()
	d.requests.read(pod)
	d.ports = appendHostPorts(d.ports[:0], spec)
}

// readSpec sets the draft from a finished spec.
func (d *draft) readSpec(spec *planning.PodSpec) {
	d.spec = *spec
	d.labels = d.labels.of(spec.Labels)
	d.requests.readList(spec.Requests)
	d.ports = spec.HostPorts
}

// finish returns the spec of the draft, with its own maps and lists.
func (d *draft) finish() planning.PodSpec {
	out := d.spec
	out.Labels, out.Requests, out.HostPorts = d.labels.labels(), d.requests.list(), nil
	if len(d.ports) > 0 {
		out.HostPorts = slices.Clone(d.ports)
	}
	return out
}

// Daemon converts a pod of a DaemonSet, or of its template, to the spec of the daemon on any node. It
// drops the node name by which the controller binds such a pod, because the spec decides which nodes
// run the daemon. It keeps labels with a key in keys.
func Daemon(pod *corev1.Pod, keys SelectorKeys) planning.PodSpec {
	pod = pod.DeepCopy()
	SetDefaults(&pod.Spec)
	out := Convert(pod, keys, nil)
	out.OwnerKind = "DaemonSet"
	if out.Affinity == nil || out.Affinity.NodeAffinity == nil {
		return out
	}
	required := out.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return out
	}
	for i := range required.NodeSelectorTerms {
		required.NodeSelectorTerms[i].MatchFields = nil
		if len(required.NodeSelectorTerms[i].MatchExpressions) == 0 {
			// Only the controller's term is left: any node matches.
			out.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			break
		}
	}
	return out
}

// Ref returns the reference of a pod. StartedAt is only set if a do-not-disrupt duration counts from
// it.
func Ref(pod *corev1.Pod) planning.PodRef {
	ref := planning.PodRef{
		Name: pod.Name, UID: string(pod.UID), Created: pod.CreationTimestamp.UTC(),
		Workload: workload(pod), Node: pod.Spec.NodeName, Terminating: pod.DeletionTimestamp != nil,
	}
	if length, _ := protection(pod); length > 0 && pod.Status.StartTime != nil {
		ref.StartedAt = pod.Status.StartTime.UTC()
	}
	return ref
}

// ownerKind returns the kind of the pod's controller. A kind of a custom API group contains the group, so that a StatefulSet of
// apps.kruise.io does not count as one of Kubernetes.
func ownerKind(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return ""
	}
	if group, _, found := strings.Cut(owner.APIVersion, "/"); found && strings.Contains(group, ".") {
		return owner.Kind + "." + group
	}
	return owner.Kind
}

// workload returns the name of the pod's controller. For a ReplicaSet of a Deployment it drops the
// template hash, which is also a label of the pod, so that a new rollout is the same workload.
func workload(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return ""
	}
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" && owner.Kind == "ReplicaSet" {
		return strings.TrimSuffix(owner.Name, "-"+hash)
	}
	return owner.Name
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
