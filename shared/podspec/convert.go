package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// defaultGraceSeconds is Kubernetes' own default.
const defaultGraceSeconds = 30

// Convert takes from a pod what planning reads. Labels are kept where named has
// their key; volumes are what the caller found out about the pod's volume claims.
func Convert(pod *corev1.Pod, named Named, volumes []scheduling.Volume) scheduling.PodSpec {
	spec := &pod.Spec
	return scheduling.PodSpec{
		Namespace:      pod.Namespace,
		OwnerKind:      ownerKind(pod),
		Labels:         named.pick(pod.Labels),
		Requests:       Requests(pod),
		NodeSelector:   spec.NodeSelector,
		Affinity:       spec.Affinity,
		Tolerations:    spec.Tolerations,
		Spread:         spec.TopologySpreadConstraints,
		HostPorts:      hostPorts(spec.Containers),
		Volumes:        volumes,
		Priority:       valueOr(spec.Priority, 0),
		GraceSeconds:   valueOr(spec.TerminationGracePeriodSeconds, defaultGraceSeconds),
		ResourceClaims: len(spec.ResourceClaims),
		DoNotDisrupt:   pod.Annotations[karpenter.DoNotDisruptAnnotationKey],
		DeletionCost:   pod.Annotations[corev1.PodDeletionCost],
	}
}

// Daemon takes from a pod of a DaemonSet, or from its template made into a pod,
// what it takes from every node. The controller ties each such pod to its node
// by name, and that is left out: the question is on which nodes there will be one.
func Daemon(pod *corev1.Pod) scheduling.PodSpec {
	out := Convert(pod, nil, nil)
	out.OwnerKind = "DaemonSet"
	if out.Affinity == nil || out.Affinity.NodeAffinity == nil {
		return out
	}
	out.Affinity = out.Affinity.DeepCopy()
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

// Ref names the pod.
func Ref(pod *corev1.Pod) scheduling.PodRef {
	return scheduling.PodRef{Name: pod.Name, UID: string(pod.UID), Created: pod.CreationTimestamp.UTC(), Node: pod.Spec.NodeName}
}

// Requests is what a pod takes from its node: the larger of its init containers
// and its containers, sidecars and overhead included, and one of the node's pods
// (B101). Equal amounts come out in one spelling.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}
	for name, quantity := range helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true}) {
		switch {
		case quantity.IsZero():
		case name == corev1.ResourceCPU:
			out[name] = *resource.NewMilliQuantity(quantity.MilliValue(), resource.DecimalSI)
		case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage:
			out[name] = *resource.NewQuantity(quantity.Value(), resource.BinarySI)
		default:
			out[name] = *resource.NewQuantity(quantity.Value(), resource.DecimalSI)
		}
	}
	return out
}

// hostPorts are those of ordinary containers; init containers are gone before
// anything could clash (B100).
func hostPorts(containers []corev1.Container) []scheduling.HostPort {
	var out []scheduling.HostPort
	for _, c := range containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				out = append(out, scheduling.HostPort{IP: port.HostIP, Port: port.HostPort, Protocol: port.Protocol})
			}
		}
	}
	return out
}

func ownerKind(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind
	}
	return ""
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Named is the set of label keys that some selector names. Other labels do not
// change a decision, and so they stay at home.
type Named map[string]bool

// Add collects the keys that a pod's own rules select other pods by.
func (n Named) Add(pod *corev1.Pod) {
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		n.AddSelector(constraint.LabelSelector)
		n.addKeys(constraint.MatchLabelKeys)
	}
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	if affinity.PodAffinity != nil {
		n.addTerms(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity.PodAntiAffinity != nil {
		n.addTerms(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// AddSelector collects the keys of a selector.
func (n Named) AddSelector(selector *metav1.LabelSelector) {
	if selector == nil {
		return
	}
	for key := range selector.MatchLabels {
		n[key] = true
	}
	for _, one := range selector.MatchExpressions {
		n[one.Key] = true
	}
}

func (n Named) addTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	terms := slices.Clone(required)
	for _, one := range preferred {
		terms = append(terms, one.PodAffinityTerm)
	}
	for _, term := range terms {
		n.AddSelector(term.LabelSelector)
		n.addKeys(term.MatchLabelKeys)
		n.addKeys(term.MismatchLabelKeys)
	}
}

func (n Named) addKeys(keys []string) {
	for _, key := range keys {
		n[key] = true
	}
}

func (n Named) pick(labels map[string]string) map[string]string {
	var out map[string]string
	for key, value := range labels {
		if !n[key] {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}
