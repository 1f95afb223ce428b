package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// lastingTaints drops the taints that an uninitialized or rebooting node will lose: ephemeral taints,
// its startup taints and the taint of a reboot.
func lastingTaints(taints, startup []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return karpenter.IsEphemeralTaint(t) || karpenter.HasTaint(startup, t) || karpenter.HasTaint([]corev1.Taint{karpenter.RebootingTaint()}, t)
	})
}

// findUntolerated returns the first taint that the pod does not tolerate. It skips PreferNoSchedule
// taints if relaxed is set.
func findUntolerated(taints []corev1.Taint, tolerations []corev1.Toleration, relaxed bool) (corev1.Taint, bool) {
	for _, taint := range taints {
		if relaxed && taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return toleratesTaint(t, taint) }) {
			return taint, true
		}
	}
	return corev1.Taint{}, false
}

// toleratesTaint applies Kubernetes' rule: an empty effect or key matches all, and an empty operator
// means Equal.
func toleratesTaint(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	default:
		return false
	}
}

// tolerateAll tolerates every taint.
var tolerateAll = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
