package conditions

import (
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// HasInstanceLabels reports whether the claim carries what its instance turned out to be.
// A pool that fixes some of these labels has them on its claims from the
// start, so that one of them says nothing.
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

// unoffered names a resource that the claim asked for and of which the node
// offers nothing, the first by name: a device plugin may be late. What is
// allocatable counts, for that is what the scheduler goes by.
func unoffered(claim *karpenter.NodeClaim, node *corev1.Node) string {
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

func first(taints []corev1.Taint, is func(corev1.Taint) bool) (corev1.Taint, bool) {
	if i := slices.IndexFunc(taints, is); i >= 0 {
		return taints[i], true
	}
	return corev1.Taint{}, false
}

// written is a taint as kubectl takes it.
func written(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// truncated cuts a message where Karpenter does, but never a character in two.
func truncated(message string) string {
	if len(message) < maxMessageBytes {
		return message
	}
	cut := maxMessageBytes
	for cut < len(message) && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + "..."
}

func yes(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}
}

func unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}
