package podspec

import (
	"maps"
	"slices"
	"strings"

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

// Provisionable judges a pod. It is the scheduler that says which
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

// Reschedulable reports whether a pod on a node that goes away will need another:
// it runs, somebody replaces it, and it is not going itself. The pod of a
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

// The reasons why a pod is left alone that its owner may not know of: it is told, as
// upstream does.
const (
	// PicksByFields is that only a node that exists can be what it asks for.
	PicksByFields = "it picks nodes by their fields (matchFields), which a new node cannot have"
	// restricted is that it requires a label which scheduling keeps for itself.
	restricted = "it requires a label that no NodePool can give a node: "
)

// Tell reports whether the owner of a pod should hear for what reason it is left
// alone.
func Tell(reason string) bool {
	return reason == PicksByFields || reason == TooLarge || strings.HasPrefix(reason, restricted)
}

// refusesNewNodes says why the pod admits a node of no pool: because of
// its selector, or because each term of its required affinity demands a node without
// a pool, as autoscalers do of their own, or a label that none has, or picks a
// node that exists by its fields.
func refusesNewNodes(pod *corev1.Pod) string {
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		if karpenter.IsRestrictedLabel(key) {
			return restricted + key
		}
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	reason := ""
	for i := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		reason = refuses(&affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i])
		if reason == "" {
			return ""
		}
	}
	return reason
}

// refuses says why a term admits a node of no pool. That a node lacks a restricted
// label, or has another value, is true of every new one: upstream refuses such a term
// too.
func refuses(term *corev1.NodeSelectorTerm) string {
	if slices.ContainsFunc(term.MatchExpressions, refusesPools) {
		return "it requires " + karpenter.NodePoolLabelKey + " to be absent"
	}
	if i := slices.IndexFunc(term.MatchExpressions, requiresRestricted); i >= 0 {
		return restricted + term.MatchExpressions[i].Key
	}
	if len(term.MatchFields) > 0 {
		return PicksByFields
	}
	return ""
}

func refusesPools(r corev1.NodeSelectorRequirement) bool {
	return r.Key == karpenter.NodePoolLabelKey && r.Operator == corev1.NodeSelectorOpDoesNotExist
}

func requiresRestricted(r corev1.NodeSelectorRequirement) bool {
	return r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist && karpenter.IsRestrictedLabel(r.Key)
}
