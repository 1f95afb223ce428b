package solver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// antiAffinityRules are the rules of anti-affinity of pods that run: they keep away the pods
// that they select.
type antiAffinityRules struct {
	all   []*antiAffinityRule
	known map[string]*antiAffinityRule
	// byLabel are those that select only pods with a label of one value, by "key=value";
	// those that do not are under "".
	byLabel map[string][]*antiAffinityRule
	// bySet remembers which rules select the pods of a set.
	bySet map[*labelSet][]*antiAffinityRule
}

// antiAffinityRule is one such rule, and where pods run that have it.
type antiAffinityRule struct {
	id        int
	key       string
	selection selection
	at        []rulePods
}

// rulePods is a number of pods on a node; inside says that the rule selects them,
// too.
type rulePods struct {
	node, count int
	inside      bool
}

// kindRule is a rule of a kind of pods.
type kindRule struct {
	of     *antiAffinityRule
	inside bool
}

// readRules finds the rules of a kind.
func (o *antiAffinityRules) readRules(w *state, k *podKind) (out []kindRule) {
	terms := requiredAntiAffinity(k.spec.Affinity)
	for i := range terms {
		chosen, err := w.termSelection(&terms[i], k.spec)
		if err != nil {
			continue // Kubernetes ignores a term that it cannot read.
		}
		key := karpenter.NormalizeLabel(terms[i].TopologyKey)
		id := key + "\x00" + chosen.key()
		rule, ok := o.known[id]
		if !ok {
			rule = &antiAffinityRule{id: len(o.all), key: key, selection: chosen}
			if o.known == nil {
				o.known = map[string]*antiAffinityRule{}
			}
			o.known[id] = rule
			o.all = append(o.all, rule)
		}
		out = append(out, kindRule{rule, chosen.matchesSet(k.set)})
	}
	return out
}

// indexRules sorts the rules by what they need, for who asks from now on.
func (o *antiAffinityRules) indexRules() {
	o.byLabel, o.bySet = map[string][]*antiAffinityRule{}, map[*labelSet][]*antiAffinityRule{}
	for _, rule := range o.all {
		o.byLabel[rule.selection.requiredLabel] = append(o.byLabel[rule.selection.requiredLabel], rule)
	}
}

// rulesFor are the rules that select the pods of a set, in the order of their ids.
func (o *antiAffinityRules) rulesFor(set *labelSet) []*antiAffinityRule {
	if got, ok := o.bySet[set]; ok {
		return got
	}
	among := slices.Clone(o.byLabel[""])
	for name, value := range maps.All(set.labels) {
		among = append(among, o.byLabel[name+"="+value]...)
	}
	out := slices.DeleteFunc(among, func(rule *antiAffinityRule) bool { return !rule.selection.matchesSet(set) })
	slices.SortFunc(out, func(a, b *antiAffinityRule) int { return cmp.Compare(a.id, b.id) })
	o.bySet[set] = out
	return out
}
