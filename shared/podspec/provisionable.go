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
	case nodeBound(pod):
		return Verdict{Reason: "its kind of pod belongs to a node that exists"}
	case refusesPools(pod):
		return Verdict{Reason: "it requires " + karpenter.NodePoolLabelKey + " to be absent"}
	}
	return Verdict{Provisionable: true}
}

// Reschedulable reports whether a pod on a node that goes away will need another
// (B083): it runs, somebody replaces it, and it is not going itself.
func Reschedulable(pod *corev1.Pod) bool {
	return !ended(pod) && pod.DeletionTimestamp == nil && !nodeBound(pod)
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// nodeBound pods come and go with their node: daemons, static pods and mirrors.
func nodeBound(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" || o.Kind == "Node"
	})
}

// refusesPools reports whether every term of the required affinity keeps the pod
// off nodes of any pool, as autoscalers themselves do (A013).
func refusesPools(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	refuses := func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == karpenter.NodePoolLabelKey && r.Operator == corev1.NodeSelectorOpDoesNotExist
		})
	}
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return !refuses(term) })
}
