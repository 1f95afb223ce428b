package solver

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// keyWriter encodes the parts of a pod spec into a cache key. Texts are preceded by their length and
// lists by their count, so that different specs have different keys.
type keyWriter struct {
	bytes []byte
	keys  []string
	known map[string]string
}

// constraintKey returns the key of a pod's constraints on nodes. It is empty for pods without
// constraints, which most are.
func (s *keyWriter) constraintKey(spec *planning.PodSpec) string {
	if len(spec.NodeSelector)+len(spec.Tolerations)+len(spec.Volumes)+len(spec.HostPorts) == 0 && spec.Affinity == nil {
		return ""
	}
	s.bytes = s.bytes[:0]
	s.writeNodeConstraints(spec)
	return s.internKey()
}

// writeNodeConstraints writes the pod's constraints on nodes.
func (s *keyWriter) writeNodeConstraints(spec *planning.PodSpec) {
	s.writeSelector(spec.NodeSelector)
	s.writeAffinity(spec.Affinity)
	s.writeCount(len(spec.Tolerations))
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		s.writeTexts(t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
	s.writeCount(len(spec.Volumes))
	for i := range spec.Volumes {
		s.writeTerms(spec.Volumes[i].Alternatives)
	}
	s.writeCount(len(spec.HostPorts))
	for _, port := range spec.HostPorts {
		s.writeTexts(port.IP, string(port.EffectiveProtocol()))
		s.writeCount(int(port.Port))
	}
}

// internKey returns one shared string for equal keys.
func (s *keyWriter) internKey() string {
	if got, ok := s.known[string(s.bytes)]; ok {
		return got
	}
	if s.known == nil {
		s.known = map[string]string{}
	}
	out := string(s.bytes)
	s.known[out] = out
	return out
}

func (s *keyWriter) writeCount(n int) { s.bytes = binary.AppendUvarint(s.bytes, uint64(n)) }

func (s *keyWriter) writeTexts(texts ...string) {
	for _, text := range texts {
		s.writeCount(len(text))
		s.bytes = append(s.bytes, text...)
	}
}

func (s *keyWriter) writeSelector(labels map[string]string) {
	s.keys = slices.AppendSeq(s.keys[:0], maps.Keys(labels))
	slices.Sort(s.keys)
	s.writeCount(len(s.keys))
	for _, key := range s.keys {
		s.writeTexts(key, labels[key])
	}
}

func (s *keyWriter) writeAffinity(a *corev1.Affinity) {
	if a == nil || a.NodeAffinity == nil {
		s.writeCount(0)
		return
	}
	s.writeCount(1)
	if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required == nil {
		s.writeCount(0)
	} else {
		s.writeCount(1)
		s.writeTerms(required.NodeSelectorTerms)
	}
	preferred := a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	s.writeCount(len(preferred))
	for i := range preferred {
		s.writeCount(int(preferred[i].Weight))
		s.writeTerm(&preferred[i].Preference)
	}
}

func (s *keyWriter) writeTerms(terms []corev1.NodeSelectorTerm) {
	s.writeCount(len(terms))
	for i := range terms {
		s.writeTerm(&terms[i])
	}
}

func (s *keyWriter) writeTerm(t *corev1.NodeSelectorTerm) {
	for _, list := range [2][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		s.writeCount(len(list))
		for i := range list {
			s.writeTexts(list[i].Key, string(list[i].Operator))
			s.writeCount(len(list[i].Values))
			s.writeTexts(list[i].Values...)
		}
	}
}
