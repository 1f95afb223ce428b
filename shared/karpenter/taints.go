package karpenter

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Taint keys that the node's lifecycle uses.
const (
	DisruptedTaintKey    = Group + "/disrupted"
	UnregisteredTaintKey = Group + "/unregistered"
)

// readinessPrefix marks taints that node readiness rules take off by themselves.
const readinessPrefix = "readiness.k8s.io/"

// ephemeralTaints go away on their own while a node starts up. Of a node that is not ready yet, only these effects.
var ephemeralTaints = []corev1.Taint{
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
	{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule, Value: "true"},
	UnregisteredTaint(),
}

// DisruptedTaint keeps new pods off a node that is going away.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredTaint is on a node from its first moment until the claim's labels and taints are on it, so that no pod runs
// there on false assumptions.
func UnregisteredTaint() corev1.Taint {
	return corev1.Taint{Key: UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
}

// IsEphemeralTaint reports whether the taint is one that a node loses by itself while it starts.
func IsEphemeralTaint(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, readinessPrefix) || HasTaint(ephemeralTaints, t)
}

// HasTaint reports whether the taint is in the list. Taints are told apart by key and effect; whatever value one has, it
// is the same taint.
func HasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(other corev1.Taint) bool { return other.MatchTaint(&t) })
}
