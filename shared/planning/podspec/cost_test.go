package podspec_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// karpenter.sh/disruption-cost wins whenever it is present. pod-deletion-cost counts only if users
// write it.
func TestCostAnnotation(t *testing.T) {
	const own, kubernetes = karpenter.DisruptionCostAnnotationKey, corev1.PodDeletionCost
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		user, ours  string
	}{
		{"none", nil, "", ""},
		{"pod-deletion-cost", map[string]string{kubernetes: "5"}, "5", ""},
		{"disruption-cost", map[string]string{own: "-7"}, "-7", "-7"},
		{"both", map[string]string{own: "-7", kubernetes: "5"}, "-7", "-7"},
		{"no number", map[string]string{own: "dear", kubernetes: "5"}, "dear", "dear"},
		{"empty", map[string]string{own: "", kubernetes: "5"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}}
			if got := podspec.CostAnnotation(pod, false); got != tt.user {
				t.Errorf("got %q, want %q", got, tt.user)
			}
			if got := podspec.CostAnnotation(pod, true); got != tt.ours {
				t.Errorf("with managed deletion costs got %q, want %q", got, tt.ours)
			}
			podspec.Trim(pod)
			if got := podspec.Convert(pod, nil, nil).DeletionCost; got != tt.user {
				t.Errorf("the trimmed pod has the cost %q, want %q", got, tt.user)
			}
		})
	}
}
