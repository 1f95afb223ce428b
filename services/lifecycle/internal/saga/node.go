package saga

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Tainted is the node with the taint that keeps further pods away from it (B164);
// false where it has it. It stays in its load balancers: what runs there runs on
// until the drain.
func Tainted(node *corev1.Node) (*corev1.Node, bool) {
	taint := karpenter.DisruptedTaint()
	if karpenter.HoldsTaint(node.Spec.Taints, taint) {
		return node, false
	}
	node = node.DeepCopy()
	node.Spec.Taints = append(without(node.Spec.Taints, taint.Key), taint)
	return node, true
}

// Untainted is the node without it; false where it has none.
func Untainted(node *corev1.Node) (*corev1.Node, bool) {
	taint := karpenter.DisruptedTaint()
	if !karpenter.HoldsTaint(node.Spec.Taints, taint) {
		return node, false
	}
	node = node.DeepCopy()
	node.Spec.Taints = without(node.Spec.Taints, taint.Key)
	return node, true
}

func without(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
