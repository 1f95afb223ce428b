package solver

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestDifferentSpecsAreDifferentKinds checks all specs with one or two of some fields. Their texts are bytes that a key also
// uses for lengths and counts.
func TestDifferentSpecsAreDifferentKinds(t *testing.T) {
	required := func(term corev1.NodeSelectorTerm) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
		}
	}
	fields := []func(*planning.PodSpec){
		func(*planning.PodSpec) {},
		required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{}}}),
		required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{}}, MatchFields: []corev1.NodeSelectorRequirement{{}}}),
	}
	for _, text := range []string{"\x00", "\x01", "\x02", "\x01\x01"} {
		fields = append(fields,
			func(s *planning.PodSpec) { s.Namespace = text },
			func(s *planning.PodSpec) { s.OwnerKind = text },
			func(s *planning.PodSpec) { s.DoNotDisrupt = text },
			func(s *planning.PodSpec) { s.DeletionCost = text },
			func(s *planning.PodSpec) { s.Labels = map[string]string{text: ""} },
			func(s *planning.PodSpec) { s.NodeSelector = map[string]string{text: ""} },
			func(s *planning.PodSpec) {
				s.Requests = corev1.ResourceList{corev1.ResourceName(text): resource.MustParse("1")}
			},
			func(s *planning.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: text}} },
			func(s *planning.PodSpec) { s.Tolerations = []corev1.Toleration{{Value: text}} },
			func(s *planning.PodSpec) { s.Volumes = []planning.Volume{{Claim: text}} },
			func(s *planning.PodSpec) { s.Volumes = []planning.Volume{{Driver: text}} },
			func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{IP: text}} },
			required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: text}}}),
			required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Values: []string{text}}}}),
			required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Values: []string{text}}}}),
			func(s *planning.PodSpec) { s.Priority = int32(len(text)) },
			func(s *planning.PodSpec) { s.GraceSeconds = int64(len(text)) },
			func(s *planning.PodSpec) { s.ResourceClaims = len(text) },
			func(s *planning.PodSpec) { s.Claims = []planning.PodClaim{{Name: text}} },
			func(s *planning.PodSpec) { s.Spread = []corev1.TopologySpreadConstraint{{TopologyKey: text}} },
			func(s *planning.PodSpec) {
				s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: text}}}}
			},
			func(s *planning.PodSpec) {
				s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: text}}}}
			},
		)
	}
	var kinds podKinds
	for _, first := range fields {
		for _, second := range fields {
			spec := &planning.PodSpec{}
			first(spec)
			second(spec)
			if other := kinds.findKind(spec).spec; !reflect.DeepEqual(spec, other) {
				t.Errorf("two specs are of one kind:\n%+v\n%+v", spec, other)
			}
		}
	}
}
