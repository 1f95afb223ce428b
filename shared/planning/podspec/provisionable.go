package podspec

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Eligibility is whether Joist provisions nodes for a pod.
type Eligibility struct {
	Provisionable bool
	// Reason is why not; empty for pods that obviously need no node, because they run, have ended or
	// are about to be scheduled.
	Reason string
}

// Provisionable decides whether Joist provisions a node for a pod. Only pods that kube-scheduler has
// marked unschedulable qualify.
func Provisionable(pod *corev1.Pod) Eligibility {
	switch {
	case pod.Spec.NodeName != "" || !isUnschedulable(pod) || hasEnded(pod) || pod.DeletionTimestamp != nil:
		return Eligibility{}
	case pod.Status.NominatedNodeName != "":
		return Eligibility{Reason: "it waits for the pods that it preempts to terminate"}
	case NodeBound(pod):
		return Eligibility{Reason: "DaemonSet, static and mirror pods run on existing nodes only"}
	}
	if reason := refusesNewNodes(pod); reason != "" {
		return Eligibility{Reason: reason}
	}
	return Eligibility{Provisionable: true}
}

// Reschedulable reports whether the pod will need another node if its node is removed: it runs, will
// be replaced, and is not being deleted. A StatefulSet's pod counts until it is gone, because its
// replacement is created only then.
func Reschedulable(pod *corev1.Pod) bool {
	return !hasEnded(pod) && !NodeBound(pod) && (pod.DeletionTimestamp == nil || OwnedBy(pod, "StatefulSet"))
}

func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// NodeBound reports whether the pod belongs to its node: daemon, static and mirror pods.
func NodeBound(pod *corev1.Pod) bool {
	return IsStatic(pod) || OwnedBy(pod, "DaemonSet")
}

// IsStatic reports whether the kubelet owns the pod; the API shows only its mirror pod.
func IsStatic(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || OwnedBy(pod, "Node")
}

// ownerVersions are the API versions of the kinds of owners with rules of their own. The same kind in another API group, such as a
// DaemonSet of apps.kruise.io, has no rules.
var ownerVersions = map[string]string{"DaemonSet": "apps/v1", "StatefulSet": "apps/v1", "Node": "v1"}

// OwnedBy reports whether an owner of the pod, its controller or another, is a DaemonSet, StatefulSet or Node of Kubernetes, as
// Karpenter counts owners (Karpenter: pkg/utils/pod/scheduling.go, IsOwnedBy).
func OwnedBy(pod *corev1.Pod, kind string) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == kind && o.APIVersion == ownerVersions[kind]
	})
}

// Reasons for ignoring a pod that its owner may not know. Joist records an event for them, as
// Karpenter does.
const (
	// PicksByFields: only an existing node can match the pod.
	PicksByFields = "it selects nodes by field (matchFields), which a new node cannot match"
	// restricted: the pod requires a label that NodePools must not set.
	restricted = "it requires a label that a NodePool cannot set: "
)

// NeedsEvent reports whether to record an event on the pod with the reason.
func NeedsEvent(reason string) bool {
	return reason == PicksByFields || reason == TooLarge || strings.HasPrefix(reason, restricted)
}

// refusesNewNodes returns why no NodePool's node can match the pod: because of its node selector, or
// because each term of its required affinity excludes nodes of NodePools, requires a restricted label,
// or selects existing nodes by field.
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

// refuses returns why no NodePool's node can match a term. Terms that require the absence or another
// value of a restricted label match every new node, but Karpenter rejects them too.
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
