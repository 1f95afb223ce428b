package podspec_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// values returns n label values of 60 bytes each.
func values(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%06d", strings.Repeat("x", 53), i)
	}
	return out
}

// large returns a pod that avoids nodes with that many values of a label, and other pods with that
// many values.
func large(nodes, pods int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "p", Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "example.com/none": resource.MustParse("0")}}}}
	p.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpNotIn, Values: values(nodes)}},
		}}}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values(pods)}}},
		}}},
	}
	return p
}

// TestLargeSpecs checks that a pending pod with a spec larger than MaxSpec is left out. A running one
// stays with its requests, and with its anti-affinity if that fits.
func TestLargeSpecs(t *testing.T) {
	for _, c := range []struct {
		name        string
		nodes, pods int
		pending     bool
		keepsAway   bool
	}{
		{"small", 1, 1, true, true},
		{"at the size limit", 400, 100, true, true},
		{"large node affinity", 600, 1, false, true},
		{"large pod anti-affinity", 1, 600, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := large(c.nodes, c.pods)
			keys := podspec.SelectorKeys{"app": true}
			var pending, bound podspec.Classes
			if got := pending.AddPending(pod, keys, nil); got != c.pending || len(pending.List()) > 0 != c.pending {
				t.Errorf("pending pod added: %t, want %t", got, c.pending)
			}
			bound.AddBound(pod, keys, nil)
			list := bound.List()
			if len(list) != 1 || len(list[0].Pods) != 1 {
				t.Fatalf("classes of the bound pod: %+v", list)
			}
			spec := list[0].Spec
			if podspec.Oversize(spec) {
				t.Error("the bound pod's class exceeds the size limit")
			}
			if cpu := spec.Requests[corev1.ResourceCPU]; cpu.Value() != 2 {
				t.Errorf("requests of the bound pod: %v", spec.Requests)
			}
			if away := spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil; away != c.keepsAway {
				t.Errorf("the bound pod has anti-affinity: %t, want %t", away, c.keepsAway)
			}
			if fixed := spec.DoNotDisrupt == "true"; fixed == c.pending {
				t.Errorf("the bound pod is protected: %t", fixed)
			}
		})
	}
}
