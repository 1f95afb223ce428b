package conditions

import (
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// HasInstanceLabels reports whether the claim has all labels of its launched instance. Some of them
// may come from its NodePool, so one label is not enough.
func HasInstanceLabels(claim *karpenter.NodeClaim) bool {
	for _, key := range []string{
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, karpenter.CapacityTypeLabelKey,
	} {
		if claim.Labels[key] == "" {
			return false
		}
	}
	return true
}

// missingResource returns the first requested resource, by name, of which the node has nothing
// allocatable: a device plugin may be late.
func missingResource(claim *karpenter.NodeClaim, node *corev1.Node) string {
	var names []string
	for name, wanted := range claim.Spec.Resources.Requests {
		have := node.Status.Allocatable[name]
		if !wanted.IsZero() && have.IsZero() {
			names = append(names, string(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

func findTaint(taints []corev1.Taint, is func(corev1.Taint) bool) (corev1.Taint, bool) {
	if i := slices.IndexFunc(taints, is); i >= 0 {
		return taints[i], true
	}
	return corev1.Taint{}, false
}

// formatTaint formats a taint as kubectl does.
func formatTaint(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// truncateMessage truncates a message at Karpenter's limit, but never within a character.
func truncateMessage(message string) string {
	if len(message) < maxMessageBytes {
		return message
	}
	cut := maxMessageBytes
	for cut < len(message) && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + "..."
}

func trueCondition(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}
}

func unknownCondition(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}
