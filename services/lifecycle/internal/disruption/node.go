package disruption

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// IsMarked reports whether the claim has the condition DisruptionReason or its node, which may be
// nil, the disrupted taint.
func IsMarked(c *karpenter.NodeClaim, node *corev1.Node) bool {
	return c.Status.Conditions.IsTrue(karpenter.ConditionTypeDisruptionReason) || node != nil && !IsUntainted(node)
}

// IsUntainted reports whether the node lacks the disrupted taint.
func IsUntainted(node *corev1.Node) bool {
	return !karpenter.HasTaint(node.Spec.Taints, karpenter.DisruptedTaint())
}

// WithTaint returns the node with the disrupted taint; false if it has the taint. The node stays
// in its load balancers until the drain.
func WithTaint(node *corev1.Node) (*corev1.Node, bool) {
	if !IsUntainted(node) {
		return node, false
	}
	taint := karpenter.DisruptedTaint()
	node = node.DeepCopy()
	node.Spec.Taints = append(removeTaint(node.Spec.Taints, taint.Key), taint)
	return node, true
}

// WithoutTaint returns the node without the disrupted taint; false if it lacks the taint.
func WithoutTaint(node *corev1.Node) (*corev1.Node, bool) {
	if IsUntainted(node) {
		return node, false
	}
	node = node.DeepCopy()
	node.Spec.Taints = removeTaint(node.Spec.Taints, karpenter.DisruptedTaintKey)
	return node, true
}

func removeTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
