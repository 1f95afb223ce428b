package solver

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// shapes write down what decides where a pod may go by labels and taints, so that
// the question is answered once for all pods that ask it alike. Texts are led by
// their lengths and lists by their counts: two shapes are equal only if what they
// tell is.
type shapes struct {
	bytes []byte
	keys  []string
	known map[string]string
}

// of is the shape of a pod. Most pods say nothing, and theirs is empty.
func (s *shapes) of(spec *planning.PodSpec) string {
	if len(spec.NodeSelector)+len(spec.Tolerations)+len(spec.Volumes)+len(spec.HostPorts) == 0 && spec.Affinity == nil {
		return ""
	}
	s.bytes = s.bytes[:0]
	s.nodes(spec)
	return s.interned()
}

// nodes writes down what a pod says of nodes.
func (s *shapes) nodes(spec *planning.PodSpec) {
	s.selector(spec.NodeSelector)
	s.affinity(spec.Affinity)
	s.count(len(spec.Tolerations))
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		s.texts(t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
	s.count(len(spec.Volumes))
	for i := range spec.Volumes {
		s.terms(spec.Volumes[i].Alternatives)
	}
	s.count(len(spec.HostPorts))
	for _, port := range spec.HostPorts {
		s.texts(port.IP, string(port.EffectiveProtocol()))
		s.count(int(port.Port))
	}
}

// interned is one string for all equal shapes.
func (s *shapes) interned() string {
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

func (s *shapes) count(n int) { s.bytes = binary.AppendUvarint(s.bytes, uint64(n)) }

func (s *shapes) texts(texts ...string) {
	for _, text := range texts {
		s.count(len(text))
		s.bytes = append(s.bytes, text...)
	}
}

func (s *shapes) selector(labels map[string]string) {
	s.keys = slices.AppendSeq(s.keys[:0], maps.Keys(labels))
	slices.Sort(s.keys)
	s.count(len(s.keys))
	for _, key := range s.keys {
		s.texts(key, labels[key])
	}
}

func (s *shapes) affinity(a *corev1.Affinity) {
	if a == nil || a.NodeAffinity == nil {
		s.count(0)
		return
	}
	s.count(1)
	if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required == nil {
		s.count(0)
	} else {
		s.count(1)
		s.terms(required.NodeSelectorTerms)
	}
	preferred := a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	s.count(len(preferred))
	for i := range preferred {
		s.count(int(preferred[i].Weight))
		s.term(&preferred[i].Preference)
	}
}

func (s *shapes) terms(terms []corev1.NodeSelectorTerm) {
	s.count(len(terms))
	for i := range terms {
		s.term(&terms[i])
	}
}

func (s *shapes) term(t *corev1.NodeSelectorTerm) {
	for _, list := range [2][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
		s.count(len(list))
		for i := range list {
			s.texts(list[i].Key, string(list[i].Operator))
			s.count(len(list[i].Values))
			s.texts(list[i].Values...)
		}
	}
}
