package upstream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	theirs "sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Both sides agree on the taints that a node loses by itself, for every relevant key and
// effect.
func TestSameEphemeralTaints(t *testing.T) {
	keys := []string{"dedicated", karpenter.DisruptedTaintKey, "readiness.k8s.io/network", "readiness.k8s.io", corev1.TaintNodeUnschedulable}
	for _, known := range theirs.KnownEphemeralTaints {
		keys = append(keys, known.Key)
	}
	recorded := 0
	for _, key := range keys {
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute} {
			for _, value := range []string{"", "true", "false"} {
				taint := corev1.Taint{Key: key, Value: value, Effect: effect}
				ours := karpenter.IsEphemeralTaint(taint)
				if want := theirs.IsKnownEphemeralTaint(&taint); ours != want {
					t.Errorf("%s: ephemeral %v, upstream %v", taint.ToString(), ours, want)
				}
				if ours {
					recorded++
				}
			}
		}
	}
	if recorded == 0 {
		t.Error("no taint is ephemeral, so the comparison is empty")
	}
}
