package solver

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// podKind holds what all running pods with equal specs have in common, on any node.
type podKind struct {
	spec *planning.PodSpec
	// set is the label set, and antiAffinity the required anti-affinity rules of the pods.
	set          *labelSet
	antiAffinity []kindRule
	// isRead is true once the fields below are set, which happens when a pod of the kind is first
	// moved.
	isRead        bool
	requests      amounts
	constraintKey string
	preferences   preferences
	problem       string
	// requestCount counts the attempts to plan a removal of such pods. nodesWithRoom are the nodes
	// with room for one of them, computed in the second attempt.
	requestCount  int
	nodesWithRoom packing.Set
}

// podKinds indexes the kinds by spec.
type podKinds struct {
	keys  keyWriter
	all   []*podKind
	known map[string]*podKind
}

// findKind returns the kind of a spec. The spec must not change afterwards.
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

// podClasses returns the kinds as classes without pods.
func (k *podKinds) podClasses() []planning.PodClass {
	out := make([]planning.PodClass, len(k.all))
	for i, one := range k.all {
		out[i].Spec = *one.spec
	}
	return out
}

// writeSpec writes the key of a whole spec.
func (s *keyWriter) writeSpec(spec *planning.PodSpec) {
	s.bytes = s.bytes[:0]
	s.writeTexts(spec.Namespace, spec.OwnerKind, spec.DoNotDisrupt, spec.DeletionCost)
	s.writeCount(int(spec.Priority))
	s.writeCount(int(spec.GraceSeconds))
	s.writeCount(spec.ResourceClaims)
	s.writeObject(spec.Claims, len(spec.Claims) > 0)
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

// writeObject writes a rarely used field as JSON, or nothing if said is false.
func (s *keyWriter) writeObject(value any, said bool) {
	var text []byte
	if said {
		text, _ = json.Marshal(value) // Kubernetes API objects can always be encoded.
	}
	s.writeCount(len(text))
	s.bytes = append(s.bytes, text...)
}
