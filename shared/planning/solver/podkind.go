package solver

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// podKind is what all running pods of equal specs have in common, on whichever nodes
// they are.
type podKind struct {
	spec *planning.PodSpec
	// set is its labels, and owns what keeps others away from its pods.
	set          *labelSet
	antiAffinity []kindRule
	// isRead is whether what follows has been worked out, which is done when a pod of
	// the kind is moved first.
	isRead        bool
	requests      amounts
	constraintKey string
	preferences   preferences
	problem       string
	// requestCount counts how often its pods were to be moved, and roomy are the nodes that
	// had room for one of them when that was asked for the second time.
	requestCount  int
	nodesWithRoom packing.Set
}

// podKinds tell specs apart.
type podKinds struct {
	keys  keyWriter
	all   []*podKind
	known map[string]*podKind
}

// findKind is the kind of a spec, which must not change as long as the kind lives.
func (k *podKinds) findKind(spec *planning.PodSpec) *podKind {
	k.keys.writeSpec(spec)
	if got, ok := k.known[string(k.keys.bytes)]; ok {
		return got
	}
	if k.known == nil {
		k.known = map[string]*podKind{}
	}
	made := &podKind{spec: spec}
	k.known[string(k.keys.bytes)] = made
	k.all = append(k.all, made)
	return made
}

// podClasses are the podKinds as classes that have no pods.
func (k *podKinds) podClasses() []planning.PodClass {
	out := make([]planning.PodClass, len(k.all))
	for i, one := range k.all {
		out[i].Spec = *one.spec
	}
	return out
}

// writeSpec writes down all that a spec says.
func (s *keyWriter) writeSpec(spec *planning.PodSpec) {
	s.bytes = s.bytes[:0]
	s.writeTexts(spec.Namespace, spec.OwnerKind, spec.DoNotDisrupt, spec.DeletionCost)
	s.writeCount(int(spec.Priority))
	s.writeCount(int(spec.GraceSeconds))
	s.writeCount(spec.ResourceClaims)
	s.writeSelector(spec.Labels)
	s.writeAmounts(spec.Requests)
	s.writeNodeConstraints(spec)
	s.writeCount(len(spec.Volumes))
	for i := range spec.Volumes {
		s.writeTexts(spec.Volumes[i].Claim, spec.Volumes[i].Driver, spec.Volumes[i].Problem)
	}
	s.writeObject(spec.Spread, len(spec.Spread) > 0)
	affinity := spec.Affinity
	s.writeObject(affinity, affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil))
}

func (s *keyWriter) writeAmounts(list corev1.ResourceList) {
	names := slices.Sorted(maps.Keys(list))
	s.writeCount(len(names))
	for _, name := range names {
		s.writeTexts(string(name))
		s.writeCount(int(toInteger(name, list[name])))
	}
}

// writeObject writes down what is seldom said.
func (s *keyWriter) writeObject(value any, said bool) {
	var text []byte
	if said {
		text, _ = json.Marshal(value) // Kubernetes' own objects always can be.
	}
	s.writeCount(len(text))
	s.bytes = append(s.bytes, text...)
}
