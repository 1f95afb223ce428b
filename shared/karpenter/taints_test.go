package karpenter_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Exactly the taints of a starting node are ephemeral.
func TestIsEphemeralTaint(t *testing.T) {
	const none, noSchedule, noExecute = corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	for _, test := range []struct {
		key, value string
		effect     corev1.TaintEffect
		want       bool
	}{
		{corev1.TaintNodeNotReady, "", noSchedule, true},
		{corev1.TaintNodeNotReady, "", noExecute, true},
		{corev1.TaintNodeNotReady, "", none, false},
		{corev1.TaintNodeUnreachable, "", noSchedule, true},
		{corev1.TaintNodeUnreachable, "", noExecute, false},
		{"node.cloudprovider.kubernetes.io/uninitialized", "true", noSchedule, true},
		{"node.cloudprovider.kubernetes.io/uninitialized", "", noSchedule, true},
		{"node.cloudprovider.kubernetes.io/uninitialized", "true", noExecute, false},
		{karpenter.UnregisteredTaintKey, "", noExecute, true},
		{karpenter.UnregisteredTaintKey, "", noSchedule, false},
		{"readiness.k8s.io/network", "", noSchedule, true},
		{"readiness.k8s.io/network", "pending", noExecute, true},
		{"readiness.k8s.io", "", noSchedule, false},
		{"dedicated", "", noSchedule, false},
	} {
		taint := corev1.Taint{Key: test.key, Value: test.value, Effect: test.effect}
		if got := karpenter.IsEphemeralTaint(taint); got != test.want {
			t.Errorf("%s=%s:%s is ephemeral: %t", test.key, test.value, test.effect, got)
		}
	}
}
