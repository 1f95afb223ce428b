package solver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// plannedHostname is the host name of nodes to come: a pod that asks for a
// particular one must not be promised any of them.
const plannedHostname = "joist.sh/planned"

// feasibleSet is where a set of requirements can be satisfied: on which columns, on
// which of the planes of those, and on which nodes that exist.
type feasibleSet struct {
	requirements      planning.Requirements
	candidates        packing.Set
	zoneCapacityTypes uint64
	nodes             packing.Set
	// nonEmpty is whether there is any column or node at all.
	nonEmpty bool
	// key is equal for equal reaches; narrower ones are kept by label and value.
	key          string
	tolerations  []corev1.Toleration
	relaxed      bool
	narrowedSets map[string]map[string]*feasibleSet
	// lastHolder is a column of it that held the last class that was asked about, and is
	// likely to hold the next one.
	lastHolder *packing.Column
	// whole is the same reach while no node is gone.
	whole *feasibleSet
}

// findFeasibleSet works out where requirements hold, once for each key.
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

// narrowToValue is the part of a reach where a label has one value.
func (w *state) narrowToValue(r *feasibleSet, key, value string) *feasibleSet {
	if got, ok := r.narrowedSets[key][value]; ok {
		return got
	}
	return w.narrowTo(r, key, value, planning.In(value))
}

// narrowToLabel is the part of a reach where a label is set.
func (w *state) narrowToLabel(r *feasibleSet, key string) *feasibleSet {
	const name = "\x00set" // No label has this value.
	if got, ok := r.narrowedSets[key][name]; ok {
		return got
	}
	return w.narrowTo(r, key, name, planning.NewValues(corev1.NodeSelectorOpExists))
}

// narrowTo makes the part of a reach where a label has one of some values, and keeps
// it under a name.
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
		// What a class cannot use for other reasons stays out.
		out.candidates = w.internSet(w.candidatesFor(&out).And(r.candidates))
	}
	out.nodes = w.nodesFor(&out)
	out.key = r.key + "\x00" + key + "=" + name
	out.nonEmpty = w.isBuyable(&out) || out.nodes.Len() > 0
	return &out
}

// isBuyable reports whether any of the columns is sold on any of the planes.
func (w *state) isBuyable(r *feasibleSet) bool {
	return r.zoneCapacityTypes != 0 && w.anyCandidate(r, func(*packing.Column) bool { return true })
}

// anyCandidate reports whether something holds for a column of the reach that is sold in
// it.
func (w *state) anyCandidate(r *feasibleSet, holds func(*packing.Column) bool) bool {
	found := false
	r.candidates.Each(func(k int) bool {
		column := &w.problem.Columns[k]
		found = slices.ContainsFunc(column.Offers, func(o packing.Offer) bool { return r.zoneCapacityTypes&(1<<o.Plane) != 0 }) && holds(column)
		return !found
	})
	return found
}

// zoneCapacityTypesFor are the planes on which the requirements hold.
func (w *state) zoneCapacityTypesFor(want planning.Requirements) uint64 {
	out := uint64(0)
	for i, plane := range w.zoneCapacityTypes {
		if want.AllowsOffering(plane) {
			out |= 1 << i
		}
	}
	return out
}

// candidatesFor are the columns whose nodes could satisfy the requirements.
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

// internSet is the one set of all that are equal, so that the packer sees which
// pods may go to the same columns.
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

// addPoolCandidates adds the columns of one pool.
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

// setsLabel reports whether the pool gives its nodes a label that their type lacks.
func (p *pool) setsLabel(one labelRule) bool {
	given, ok := p.requirements[one.key]
	return ok && !given.Intersect(one.values).IsEmpty()
}

// satisfiesRules reports whether a column satisfies rules about what types decide.
func (c *candidate) satisfiesRules(questions []typeFilter, rules labelRules) bool {
	if c.reservation != "" { // It has labels of its own.
		return rules.allowLabels(c.labels, c.pool.requirements)
	}
	return allAllow(questions, c.typeIndex)
}

// poolSatisfies checks the labels that neither the type nor the offering decides.
func (w *state) poolSatisfies(base, want planning.Requirements) bool {
	for key, values := range want {
		if w.isTypeLabel(key) || key == corev1.LabelHostname || slices.Contains(planning.OfferingLabels, key) {
			continue
		}
		offered := base.AllowedValues(key)
		if _, fixed := base[key]; !fixed && karpenter.IsWellKnownLabel(key) {
			offered = planning.AbsentValue() // No type here has it, and no pool says otherwise.
		}
		if offered.Intersect(values).IsEmpty() {
			return false
		}
	}
	return true
}

// labelRules are requirements as a list, which is faster to go through than a map.
type labelRules []labelRule

type labelRule struct {
	key    string
	values planning.Values
	// decided is whether a type without the label lacks it for good.
	decided bool
}

// sortRules returns the requirements sorted by key.
func sortRules(r planning.Requirements) labelRules {
	out := make(labelRules, 0, len(r))
	for _, key := range slices.Sorted(maps.Keys(r)) {
		out = append(out, labelRule{key, r[key], karpenter.IsWellKnownLabel(key) && !slices.Contains(planning.LabelsNotFromType, key)})
	}
	return out
}

// allowLabels reports whether a node of a type with these labels could satisfy the
// rules. A label that the type lacks may still be given by the pool's base.
func (r labelRules) allowLabels(labels map[string]string, base planning.Requirements) bool {
	for i := range r {
		one := &r[i]
		if value, ok := labels[one.key]; ok {
			if !one.values.Has(value) {
				return false
			}
			continue
		}
		if one.values.AllowsAbsent() {
			continue
		}
		if given, ok := base[one.key]; ok && !given.Intersect(one.values).IsEmpty() {
			continue
		}
		if one.decided || base != nil {
			return false
		}
	}
	return true
}
