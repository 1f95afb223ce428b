package podspec_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// TestRefWorkload checks that Ref contains the name of the workload, which stays the same across
// rollouts.
func TestRefWorkload(t *testing.T) {
	owner := func(kind, name string, controls bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(controls)}
	}
	for _, tt := range []struct {
		name   string
		hash   string
		owners []metav1.OwnerReference
		want   string
	}{
		{"no owner", "", nil, ""},
		{"an owner that is no controller", "", []metav1.OwnerReference{owner("Lease", "l", false)}, ""},
		{"pod of a Deployment", "5b7f9c", []metav1.OwnerReference{owner("ReplicaSet", "web-5b7f9c", true)}, "web"},
		{"pod of the next rollout", "66dd4", []metav1.OwnerReference{owner("Lease", "l", false), owner("ReplicaSet", "web-66dd4", true)}, "web"},
		{"pod of a plain ReplicaSet", "", []metav1.OwnerReference{owner("ReplicaSet", "web-5b7f9c", true)}, "web-5b7f9c"},
		{"adopted pod of a ReplicaSet", "5b7f9c", []metav1.OwnerReference{owner("ReplicaSet", "web", true)}, "web"},
		{"pod of a StatefulSet", "", []metav1.OwnerReference{owner("StatefulSet", "db", true)}, "db"},
		{"pod of another kind with the same label", "5b7f9c", []metav1.OwnerReference{owner("Rollout", "web-5b7f9c", true)}, "web-5b7f9c"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: tt.owners}}
		if tt.hash != "" {
			pod.Labels = map[string]string{"pod-template-hash": tt.hash}
		}
		if got := podspec.Ref(pod).Workload; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
