package solver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// owners are the rules of anti-affinity of pods that run: they keep away the pods
// that they select.
type owners struct {
	all   []*owner
	known map[string]*owner
	// needing are those that select only pods with a label of one value, by "key=value";
	// those that do not are under "".
	needing map[string][]*owner
	// over remembers which rules select the pods of a set.
	over map[*labelSet][]*owner
}

// owner is one such rule, and where pods run that have it.
type owner struct {
	id        int
	key       string
	selection selection
	at        []ownedAt
}

// ownedAt is a number of pods on a node; inside says that the rule selects them,
// too.
type ownedAt struct {
	node, count int
	inside      bool
}

// ownership is a rule of a kind of pods.
type ownership struct {
	of     *owner
	inside bool
}

// read finds the rules of a kind.
func (o *owners) read(w *world, k *podKind) (out []ownership) {
	terms := requiredApart(k.spec.Affinity)
	for i := range terms {
		chosen, err := w.termSelection(&terms[i], k.spec)
		if err != nil {
			continue // Kubernetes ignores a term that it cannot read.
		}
		key := karpenter.NormalizeLabel(terms[i].TopologyKey)
		id := key + "\x00" + chosen.key()
		rule, ok := o.known[id]
		if !ok {
			rule = &owner{id: len(o.all), key: key, selection: chosen}
			if o.known == nil {
				o.known = map[string]*owner{}
			}
			o.known[id] = rule
			o.all = append(o.all, rule)
		}
		out = append(out, ownership{rule, chosen.picks(k.set)})
	}
	return out
}

// index sorts the rules by what they need, for who asks from now on.
func (o *owners) index() {
	o.needing, o.over = map[string][]*owner{}, map[*labelSet][]*owner{}
	for _, rule := range o.all {
		o.needing[rule.selection.needs] = append(o.needing[rule.selection.needs], rule)
	}
}

// overSet are the rules that select the pods of a set, in the order of their ids.
func (o *owners) overSet(set *labelSet) []*owner {
	if got, ok := o.over[set]; ok {
		return got
	}
	among := slices.Clone(o.needing[""])
	for name, value := range maps.All(set.labels) {
		among = append(among, o.needing[name+"="+value]...)
	}
	out := slices.DeleteFunc(among, func(rule *owner) bool { return !rule.selection.picks(set) })
	slices.SortFunc(out, func(a, b *owner) int { return cmp.Compare(a.id, b.id) })
	o.over[set] = out
	return out
}
