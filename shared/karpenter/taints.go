package karpenter

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Taint keys of the node lifecycle.
const (
	DisruptedTaintKey    = Group + "/disrupted"    // the node is being removed
	UnregisteredTaintKey = Group + "/unregistered" // the node does not have the claim's labels and taints yet
	RebootingTaintKey    = Group + "/rebooting"    // the node is drained for a reboot, or reboots
)

// readinessPrefix is the prefix of taints that node readiness rules remove.
const readinessPrefix = "readiness.k8s.io/"

// ephemeralTaints are removed while a node starts. Of the not-ready and unreachable taints only these effects count.
var ephemeralTaints = []corev1.Taint{
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
	{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule, Value: "true"},
	UnregisteredTaint(),
}

// DisruptedTaint returns the taint that keeps new pods off a node that is being removed.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// RebootingTaint returns the taint that keeps new pods off a node from the drain before its reboot until it has booted.
func RebootingTaint() corev1.Taint {
	return corev1.Taint{Key: RebootingTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredTaint returns the taint of a node from its start until it has the claim's labels and taints, so that no
// pod is scheduled too early.
func UnregisteredTaint() corev1.Taint {
	return corev1.Taint{Key: UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
}

// IsEphemeralTaint reports whether the taint is removed by itself while a node starts.
func IsEphemeralTaint(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, readinessPrefix) || HasTaint(ephemeralTaints, t)
}

// HasTaint reports whether the list has a taint with the same key and effect. Values are ignored.
func HasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(other corev1.Taint) bool { return other.MatchTaint(&t) })
}
