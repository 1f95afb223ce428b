package karpenter

import corev1 "k8s.io/api/core/v1"

// Taint keys that the node's lifecycle uses (B028).
const (
	DisruptedTaintKey    = Group + "/disrupted"
	UnregisteredTaintKey = Group + "/unregistered"
)

// DisruptedTaint keeps new pods off a node that is going away.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredTaint is on a node from its first moment until the claim's labels and taints are on it, so that no pod runs
// there on false assumptions.
func UnregisteredTaint() corev1.Taint {
	return corev1.Taint{Key: UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
}
