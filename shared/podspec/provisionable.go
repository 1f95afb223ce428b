package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Verdict is whether Joist makes room for a pod.
type Verdict struct {
	Provisionable bool
	// Reason says why not; empty for pods that nobody would expect it of, because
	// they run, have ended or are about to be scheduled.
	Reason string
}

// Provisionable judges a pod (B082, B086). It is the scheduler that says which
// pods lack a node: Joist acts on no pod of which it has not said so.
func Provisionable(pod *corev1.Pod) Verdict {
	switch {
	case pod.Spec.NodeName != "" || !unschedulable(pod) || ended(pod) || pod.DeletionTimestamp != nil:
		return Verdict{}
	case pod.Status.NominatedNodeName != "":
		return Verdict{Reason: "it waits for pods that it preempts"}
	case NodeBound(pod):
		return Verdict{Reason: "its kind of pod belongs to a node that exists"}
	}
	if reason := refusesNewNodes(pod); reason != "" {
		return Verdict{Reason: reason}
	}
	return Verdict{Provisionable: true}
}

// Reschedulable reports whether a pod on a node that goes away will need another
// (B083): it runs, somebody replaces it, and it is not going itself. The pod of a
// StatefulSet counts until it is gone, because its successor comes only then.
func Reschedulable(pod *corev1.Pod) bool {
	return !ended(pod) && !NodeBound(pod) && (pod.DeletionTimestamp == nil || ownedBy(pod, "StatefulSet"))
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// NodeBound pods come and go with their node: daemons, static pods and mirrors.
func NodeBound(pod *corev1.Pod) bool {
	return static(pod) || ownedBy(pod, "DaemonSet")
}

// static pods are the kubelet's own; the API shows no more than their mirrors.
func static(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || ownedBy(pod, "Node")
}

func ownedBy(pod *corev1.Pod, kind string) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == kind })
}

// PicksByFields is why a pod is left alone that only a node that exists can have.
// Its owner may not know: it is told, as upstream does (B086).
const PicksByFields = "it picks nodes by their fields (matchFields), which a new node cannot have"

// refusesNewNodes says why no term of the required affinity admits a node of any
// pool (B086, B248): each demands a node without a pool, as autoscalers do of
// their own (A013), or picks a node that exists by its fields.
func refusesNewNodes(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	reason := ""
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		switch {
		case slices.ContainsFunc(term.MatchExpressions, refusesPools):
			reason = "it requires " + karpenter.NodePoolLabelKey + " to be absent"
		case len(term.MatchFields) > 0:
			reason = PicksByFields
		default:
			return ""
		}
	}
	return reason
}

func refusesPools(r corev1.NodeSelectorRequirement) bool {
	return r.Key == karpenter.NodePoolLabelKey && r.Operator == corev1.NodeSelectorOpDoesNotExist
}
