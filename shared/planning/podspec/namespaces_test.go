package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

func selecting(key string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: "v"}}
}

func TestSelectorKeys(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{LabelSelector: selecting("a"), MatchLabelKeys: []string{"b"}}},
		Affinity: &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selecting("c"), NamespaceSelector: selecting("space")}},
			}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: selecting("d"), MismatchLabelKeys: []string{"e"}, NamespaceSelector: &metav1.LabelSelector{}},
			}},
		},
	}}
	keys, spaces := podspec.SelectorKeys{}, podspec.SelectorKeys{}
	keys.Add(pod)
	spaces.AddNamespaces(pod)
	if diff := cmp.Diff(podspec.SelectorKeys{"a": true, "b": true, "c": true, "d": true, "e": true}, keys); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(podspec.SelectorKeys{"space": true, "": true}, spaces); diff != "" {
		t.Error(diff)
	}
	if got := keys.Pick(map[string]string{"a": "1", "z": "2"}); !cmp.Equal(got, map[string]string{"a": "1"}) {
		t.Errorf("Pick = %v", got)
	}
}

// TestSelectorKeysSelectAll checks that a selector without keys selects all pods, and a missing one selects
// none.
func TestSelectorKeysSelectAll(t *testing.T) {
	for _, tt := range []struct {
		name     string
		selector *metav1.LabelSelector
		want     bool
	}{
		{"no selector", nil, false},
		{"selector with a key", selecting("a"), false},
		{"selector without keys", &metav1.LabelSelector{}, true},
	} {
		keys := podspec.SelectorKeys{}
		keys.AddSelector(tt.selector)
		if got := keys.SelectsAll(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestNamespaces(t *testing.T) {
	space := func(name string, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	classes := []planning.PodClass{{Spec: planning.PodSpec{Namespace: "web"}}, {Spec: planning.PodSpec{Namespace: "plain"}}}
	got := podspec.Namespaces([]*corev1.Namespace{
		space("web", map[string]string{"team": "a", "secret": secret}),
		space("plain", map[string]string{"secret": secret}),
		space("unused", map[string]string{"team": "b"}),
	}, podspec.SelectorKeys{"team": true}, nil, classes)
	if diff := cmp.Diff(map[string]map[string]string{"web": {"team": "a"}}, got); diff != "" {
		t.Error(diff)
	}
}
