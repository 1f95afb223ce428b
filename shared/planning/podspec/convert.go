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

// defaultGraceSeconds is Kubernetes' own default.
const defaultGraceSeconds = 30

// Convert takes from a pod what planning reads. Labels are kept where named has
// their key; volumes are what Volumes says of the pod's volume claims.
func Convert(pod *corev1.Pod, named Named, volumes []planning.Volume) planning.PodSpec {
	var d draft
	d.read(pod, named, volumes)
	return d.finish()
}

// draft is a pod's spec while it is not known whether an equal one is there
// already: its maps are lists and its lists are borrowed, so that reading the
// thousandth pod of a class costs no memory.
type draft struct {
	// spec lacks labels, requests and host ports.
	spec     planning.PodSpec
	labels   pairs
	requests amounts
	ports    []planning.HostPort
}

// read replaces the draft by that of a pod.
func (d *draft) read(pod *corev1.Pod, named Named, volumes []planning.Volume) {
	spec := &pod.Spec
	d.spec = planning.PodSpec{
		Namespace:      pod.Namespace,
		OwnerKind:      ownerKind(pod),
		NodeSelector:   spec.NodeSelector,
		Affinity:       spec.Affinity,
		Tolerations:    spec.Tolerations,
		Spread:         spec.TopologySpreadConstraints,
		Volumes:        volumes,
		Priority:       valueOr(spec.Priority, 0),
		GraceSeconds:   valueOr(spec.TerminationGracePeriodSeconds, defaultGraceSeconds),
		ResourceClaims: len(spec.ResourceClaims),
		DoNotDisrupt:   pod.Annotations[karpenter.DoNotDisruptAnnotationKey],
		DeletionCost:   pod.Annotations[corev1.PodDeletionCost],
	}
	d.labels = named.pick(pod.Labels, d.labels[:0])
	d.labels.sort()
	d.requests.read(pod)
	d.ports = hostPorts(spec.Containers, d.ports[:0])
}

// readSpec replaces the draft by that of a finished spec.
func (d *draft) readSpec(spec *planning.PodSpec) {
	d.spec = *spec
	d.labels = d.labels.of(spec.Labels)
	d.requests.readList(spec.Requests)
	d.ports = spec.HostPorts
}

// finish is the spec that the draft describes, with maps and lists of its own.
func (d *draft) finish() planning.PodSpec {
	out := d.spec
	out.Labels, out.Requests, out.HostPorts = d.labels.labels(), d.requests.list(), nil
	if len(d.ports) > 0 {
		out.HostPorts = slices.Clone(d.ports)
	}
	return out
}

// Daemon takes from a pod of a DaemonSet, or from its template made into a pod,
// what it takes from every node. The controller ties each such pod to its node
// by name, and that is left out: the question is on which nodes there will be one.
func Daemon(pod *corev1.Pod) planning.PodSpec {
	pod = pod.DeepCopy()
	SetDefaults(&pod.Spec)
	out := Convert(pod, nil, nil)
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
			// What is left is a term of the controller alone: any node will do.
			out.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			break
		}
	}
	return out
}

// Ref names the pod. When it began is told of those alone whose protection counts
// from then.
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

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.Kind
	}
	return ""
}

// workload names the pod's controller. A ReplicaSet of a Deployment has its name and
// the hash of its template, which is a label of the pod, too: another rollout of it is
// the same workload.
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
