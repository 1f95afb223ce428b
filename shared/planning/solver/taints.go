package solver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// lastingTaints leaves out the taints that a node which is not yet initialized will
// lose: the ephemeral ones and its startup taints.
func lastingTaints(taints, startup []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return karpenter.IsEphemeralTaint(t) || karpenter.HasTaint(startup, t)
	})
}

// findUntolerated finds the first taint that keeps the pod away. PreferNoSchedule
// counts like the others until the pod has been relaxed.
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

// toleratesTaint is Kubernetes' rule: an empty effect or key matches all of them, and
// an empty operator means Equal.
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
