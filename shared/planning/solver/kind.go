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
	set  *labelSet
	owns []ownership
	// known is whether what follows has been worked out, which is done when a pod of
	// the kind is moved first.
	known   bool
	need    amounts
	shape   string
	wish    wish
	problem string
	// asked counts how often its pods were to be moved, and roomy are the nodes that
	// had room for one of them when that was asked for the second time.
	asked int
	roomy packing.Set
}

// podKinds tell specs apart.
type podKinds struct {
	shapes shapes
	all    []*podKind
	known  map[string]*podKind
}

// of is the kind of a spec, which must not change as long as the kind lives.
func (k *podKinds) of(spec *planning.PodSpec) *podKind {
	k.shapes.whole(spec)
	if got, ok := k.known[string(k.shapes.bytes)]; ok {
		return got
	}
	if k.known == nil {
		k.known = map[string]*podKind{}
	}
	made := &podKind{spec: spec}
	k.known[string(k.shapes.bytes)] = made
	k.all = append(k.all, made)
	return made
}

// classes are the podKinds as classes that have no pods.
func (k *podKinds) classes() []planning.PodClass {
	out := make([]planning.PodClass, len(k.all))
	for i, one := range k.all {
		out[i].Spec = *one.spec
	}
	return out
}

// whole writes down all that a spec says.
func (s *shapes) whole(spec *planning.PodSpec) {
	s.bytes = s.bytes[:0]
	s.texts(spec.Namespace, spec.OwnerKind, spec.DoNotDisrupt, spec.DeletionCost)
	s.count(int(spec.Priority))
	s.count(int(spec.GraceSeconds))
	s.count(spec.ResourceClaims)
	s.selector(spec.Labels)
	s.amounts(spec.Requests)
	s.nodes(spec)
	s.count(len(spec.Volumes))
	for i := range spec.Volumes {
		s.texts(spec.Volumes[i].Claim, spec.Volumes[i].Driver, spec.Volumes[i].Problem)
	}
	s.object(spec.Spread, len(spec.Spread) > 0)
	affinity := spec.Affinity
	s.object(affinity, affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil))
}

func (s *shapes) amounts(list corev1.ResourceList) {
	names := slices.Sorted(maps.Keys(list))
	s.count(len(names))
	for _, name := range names {
		s.texts(string(name))
		s.count(int(integer(name, list[name])))
	}
}

// object writes down what is seldom said.
func (s *shapes) object(value any, said bool) {
	var text []byte
	if said {
		text, _ = json.Marshal(value) // Kubernetes' own objects always can be.
	}
	s.count(len(text))
	s.bytes = append(s.bytes, text...)
}
