package watcher_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// While lifecycle writes pod-deletion-cost, the watcher does not see it. The object that it was read
// from keeps it.
func TestTrimsDropManagedDeletionCosts(t *testing.T) {
	for managed, want := range map[bool]string{false: "5", true: ""} {
		pod := unschedulable("default", "web")
		annotations := map[string]string{corev1.PodDeletionCost: "5"}
		pod.Annotations = annotations
		watcher.Trims(managed)[cluster.Pods].Clear(pod)
		if got := pod.Annotations[corev1.PodDeletionCost]; got != want || annotations[corev1.PodDeletionCost] != "5" {
			t.Errorf("managed %t: the trimmed pod has the deletion cost %q, want %q; the original has %v", managed, got, want, annotations)
		}
	}
}
