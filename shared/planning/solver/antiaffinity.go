package solver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// antiAffinityRules are the required anti-affinity rules of running pods, which exclude the pods that
// they select.
type antiAffinityRules struct {
	all   []*antiAffinityRule
	known map[string]*antiAffinityRule
	// byLabel indexes the rules by the "key=value" label that they require, or "" if they require
	// none.
	byLabel map[string][]*antiAffinityRule
	// bySet caches the rules that select a label set.
	bySet map[*labelSet][]*antiAffinityRule
}

// antiAffinityRule is one such rule, and the nodes of the running pods that have it.
type antiAffinityRule struct {
	id        int
	key       string
	selection selection
	at        []rulePods
}

// rulePods is a number of pods with the rule on a node; inside is true if the rule selects them too.
type rulePods struct {
	node, count int
	inside      bool
}

// kindRule is a rule of a kind; inside is true if it selects the kind's own pods.
type kindRule struct {
	of     *antiAffinityRule
	inside bool
}

// readRules returns the rules of a kind.
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

// indexRules rebuilds the index and clears the cache.
func (o *antiAffinityRules) indexRules() {
	o.byLabel, o.bySet = map[string][]*antiAffinityRule{}, map[*labelSet][]*antiAffinityRule{}
	for _, rule := range o.all {
		o.byLabel[rule.selection.requiredLabel] = append(o.byLabel[rule.selection.requiredLabel], rule)
	}
}

// rulesFor returns the rules that select a label set, ordered by id.
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
