package disruption

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Marked reports whether something says that the claim is disrupted: itself, or its
// node, which may be nil.
func Marked(c *karpenter.NodeClaim, node *corev1.Node) bool {
	return c.Status.Conditions.True(karpenter.ConditionTypeDisruptionReason) || node != nil && !Taintless(node)
}

// Taintless reports whether the node takes pods, as far as disruption is concerned.
func Taintless(node *corev1.Node) bool {
	return !karpenter.HoldsTaint(node.Spec.Taints, karpenter.DisruptedTaint())
}

// Tainted is the node with the taint that keeps further pods away from it;
// false where it has it. It stays in its load balancers: what runs there runs on
// until the drain.
func Tainted(node *corev1.Node) (*corev1.Node, bool) {
	if !Taintless(node) {
		return node, false
	}
	taint := karpenter.DisruptedTaint()
	node = node.DeepCopy()
	node.Spec.Taints = append(without(node.Spec.Taints, taint.Key), taint)
	return node, true
}

// Untainted is the node without it; false where it has none.
func Untainted(node *corev1.Node) (*corev1.Node, bool) {
	if Taintless(node) {
		return node, false
	}
	node = node.DeepCopy()
	node.Spec.Taints = without(node.Spec.Taints, karpenter.DisruptedTaintKey)
	return node, true
}

func without(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
