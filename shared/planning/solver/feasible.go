package solver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// plannedHostname is the host name of new nodes. A pod that requires a specific host name therefore
// never fits on a new node.
const plannedHostname = "joist.sh/planned"

// feasibleSet is where a set of requirements can be met: candidates, their zoneCapacityTypes, and
// existing nodes.
type feasibleSet struct {
	requirements      planning.Requirements
	candidates        packing.Set
	zoneCapacityTypes uint64
	nodes             packing.Set
	// nonEmpty is true if there is any buyable candidate or any node.
	nonEmpty bool
	// key is equal for equal sets. narrowedSets caches subsets by label and value.
	key          string
	tolerations  []corev1.Toleration
	relaxed      bool
	narrowedSets map[string]map[string]*feasibleSet
	// lastHolder is the candidate that fit the last class checked; it likely fits the next one.
	lastHolder *packing.CandidateType
	// whole is the same set with all nodes, from before the removal; nil outside of removals.
	whole *feasibleSet
}

// findFeasibleSet returns where the requirements can be met, cached by key.
func (w *state) findFeasibleSet(key string, want planning.Requirements, tolerations []corev1.Toleration, relaxed bool) *feasibleSet {
	if r, ok := w.feasibleSets[key]; ok {
		return r
	}
	if w.removal != nil {
		r := w.removal.withoutRemoved(w, w.removal.state.findFeasibleSet(key, want, tolerations, relaxed))
		w.feasibleSets[key] = r
		return r
	}
	r := &feasibleSet{requirements: want, key: key, tolerations: tolerations, relaxed: relaxed}
	r.zoneCapacityTypes = w.zoneCapacityTypesFor(want)
	r.candidates = w.candidatesFor(r)
	r.nodes = w.nodesFor(r)
	r.nonEmpty = w.isBuyable(r) || r.nodes.Len() > 0
	w.feasibleSets[key] = r
	return r
}

// narrowToValue returns the subset in which a label has the given value.
func (w *state) narrowToValue(r *feasibleSet, key, value string) *feasibleSet {
	if got, ok := r.narrowedSets[key][value]; ok {
		return got
	}
	return w.narrowTo(r, key, value, planning.In(value))
}

// narrowToLabel returns the subset in which a label exists.
func (w *state) narrowToLabel(r *feasibleSet, key string) *feasibleSet {
	const name = "\x00set" // No label has this value.
	if got, ok := r.narrowedSets[key][name]; ok {
		return got
	}
	return w.narrowTo(r, key, name, planning.NewValues(corev1.NodeSelectorOpExists))
}

// narrowTo computes the subset in which a label has one of the values, and caches it under the name.
func (w *state) narrowTo(r *feasibleSet, key, name string, values planning.Values) *feasibleSet {
	out := w.narrowPart(r, key, name, values)
	if r.narrowedSets == nil {
		r.narrowedSets = map[string]map[string]*feasibleSet{}
	}
	if r.narrowedSets[key] == nil {
		r.narrowedSets[key] = map[string]*feasibleSet{}
	}
	r.narrowedSets[key][name] = out
	return out
}

func (w *state) narrowPart(r *feasibleSet, key, name string, values planning.Values) *feasibleSet {
	if r.whole == nil {
		return w.computeNarrowed(r, key, name, values)
	}
	all, ok := r.whole.narrowedSets[key][name]
	if !ok {
		all = w.removal.state.narrowTo(r.whole, key, name, values)
	}
	return w.removal.withoutRemoved(w, all)
}

func (w *state) computeNarrowed(r *feasibleSet, key, name string, values planning.Values) *feasibleSet {
	out := *r
	out.narrowedSets, out.lastHolder = nil, nil
	out.requirements = r.requirements.WithRequirement(key, values)
	if slices.Contains(planning.OfferingLabels, key) {
		out.zoneCapacityTypes = r.zoneCapacityTypes & w.zoneCapacityTypesFor(planning.Requirements{key: values})
		if out.zoneCapacityTypes == 0 {
			out.candidates = nil
		}
	} else {
		// Candidates that the set excludes for other reasons stay excluded.
		out.candidates = w.internSet(w.candidatesFor(&out).Intersect(r.candidates))
	}
	out.nodes = w.nodesFor(&out)
	out.key = r.key + "\x00" + key + "=" + name
	out.nonEmpty = w.isBuyable(&out) || out.nodes.Len() > 0
	return &out
}

// isBuyable reports whether any candidate of the set has an offering in its zoneCapacityTypes.
func (w *state) isBuyable(r *feasibleSet) bool {
	return r.zoneCapacityTypes != 0 && w.anyCandidate(r, func(*packing.CandidateType) bool { return true })
}

// anyCandidate reports whether holds is true for any buyable candidate of the set.
func (w *state) anyCandidate(r *feasibleSet, holds func(*packing.CandidateType) bool) bool {
	found := false
	r.candidates.Each(func(k int) bool {
		candidate := &w.problem.Candidates[k]
		found = slices.ContainsFunc(candidate.Prices, func(o packing.ZonePrice) bool { return r.zoneCapacityTypes&(1<<o.ZoneCapacityType) != 0 }) && holds(candidate)
		return !found
	})
	return found
}

// zoneCapacityTypesFor returns the bit set of zoneCapacityTypes that the requirements allow.
func (w *state) zoneCapacityTypesFor(want planning.Requirements) uint64 {
	out := uint64(0)
	for i, zoneCapacityType := range w.zoneCapacityTypes {
		if want.AllowsOffering(zoneCapacityType) {
			out |= 1 << i
		}
	}
	return out
}

// candidatesFor returns the candidates whose nodes could meet the requirements.
func (w *state) candidatesFor(r *feasibleSet) packing.Set {
	out := packing.NewSet(len(w.candidates))
	if host, ok := r.requirements[corev1.LabelHostname]; ok && !host.Has(plannedHostname) {
		return out
	}
	var typed labelRules
	for _, one := range sortRules(r.requirements) {
		if w.isTypeLabel(one.key) {
			typed = append(typed, one)
		}
	}
	for _, p := range w.pools {
		w.addPoolCandidates(r, p, typed, out)
	}
	return w.internSet(out)
}

// internSet returns one shared set for all equal sets. The packer compares them to find pods that can
// use the same candidates.
func (w *state) internSet(set packing.Set) packing.Set {
	key := set.Key()
	if w.sets == nil {
		w.sets = map[string]packing.Set{}
	}
	if got, ok := w.sets[key]; ok {
		return got
	}
	w.sets[key] = set
	return set
}

// addPoolCandidates adds the matching candidates of one pool to out.
func (w *state) addPoolCandidates(r *feasibleSet, p *pool, typed labelRules, out packing.Set) {
	if _, kept := findUntolerated(p.taints, r.tolerations, r.relaxed); kept || p.firstCandidate == p.endCandidate {
		return
	}
	suits := make([]bool, len(p.variants))
	for v := range p.variants {
		suits[v] = w.poolSatisfies(p.variants[v], r.requirements)
	}
	questions := make([]typeFilter, len(typed))
	for i, one := range typed {
		questions[i] = p.types.newFilter(one, one.values.AllowsAbsent() || p.setsLabel(one))
	}
	for k := p.firstCandidate; k < p.endCandidate; k++ {
		if c := &w.candidates[k]; suits[c.variant] && (len(typed) == 0 || c.satisfiesRules(questions, typed)) {
			out.Add(k)
		}
	}
}

// setsLabel reports whether the pool gives its nodes a matching value of the label, so that the type
// need not have it.
func (p *pool) setsLabel(one labelRule) bool {
	given, ok := p.requirements[one.key]
	return ok && !given.Intersect(one.values).IsEmpty()
}

// satisfiesRules reports whether a candidate meets the rules over labels of instance types.
func (c *candidate) satisfiesRules(questions []typeFilter, rules labelRules) bool {
	if c.reservation != "" { // A reservation has labels of its own.
		return rules.allowLabels(c.labels, c.pool)
	}
	return allAllow(questions, c.typeIndex)
}

// poolSatisfies checks the labels that neither the type nor the offering sets.
func (w *state) poolSatisfies(base, want planning.Requirements) bool {
	for key, values := range want {
		if w.isTypeLabel(key) || key == corev1.LabelHostname || slices.Contains(planning.OfferingLabels, key) {
			continue
		}
		offered := base.AllowedValues(key)
		if _, fixed := base[key]; !fixed && karpenter.IsWellKnownLabel(key) {
			offered = planning.AbsentValue() // Neither the types nor the pool set it.
		}
		if offered.Intersect(values).IsEmpty() {
			return false
		}
	}
	return true
}

// labelRules are requirements as a list, which is faster to iterate than a map.
type labelRules []labelRule

type labelRule struct {
	key    string
	values planning.Values
}

// sortRules returns the requirements sorted by key.
func sortRules(r planning.Requirements) labelRules {
	out := make(labelRules, 0, len(r))
	for _, key := range slices.Sorted(maps.Keys(r)) {
		out = append(out, labelRule{key, r[key]})
	}
	return out
}

// allowLabels reports whether a node of a type with these labels could meet the rules. The pool may
// set a label that the type lacks.
func (r labelRules) allowLabels(labels map[string]string, p *pool) bool {
	for i := range r {
		one := &r[i]
		if value, ok := labels[one.key]; ok {
			if !one.values.Has(value) {
				return false
			}
			continue
		}
		if !one.values.AllowsAbsent() && !p.setsLabel(*one) {
			return false
		}
	}
	return true
}
