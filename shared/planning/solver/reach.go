package solver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// placeholder is the host name of nodes to come: a pod that asks for a
// particular one must not be promised any of them.
const placeholder = "joist.sh/planned"

// reach is where a set of requirements can be satisfied: on which columns, on
// which of the planes of those, and on which nodes that exist.
type reach struct {
	want    planning.Requirements
	columns packing.Set
	planes  uint64
	nodes   packing.Set
	// some is whether there is any column or node at all.
	some bool
	// key is equal for equal reaches; narrower ones are kept by label and value.
	key      string
	tolerate []corev1.Toleration
	relaxed  bool
	narrow   map[string]map[string]*reach
	// holder is a column of it that held the last class that was asked about, and is
	// likely to hold the next one.
	holder *packing.Column
	// of is the same reach while no node is gone.
	of *reach
}

// reach works out where requirements hold, once for each key.
func (w *world) reach(key string, want planning.Requirements, tolerations []corev1.Toleration, relaxed bool) *reach {
	if r, ok := w.reaches[key]; ok {
		return r
	}
	if w.removal != nil {
		r := w.removal.remaining(w, w.removal.from.reach(key, want, tolerations, relaxed))
		w.reaches[key] = r
		return r
	}
	r := &reach{want: want, key: key, tolerate: tolerations, relaxed: relaxed}
	r.planes = w.planesOf(want)
	r.columns = w.columnsOf(r)
	r.nodes = w.nodesOf(r)
	r.some = w.buyable(r) || r.nodes.Len() > 0
	w.reaches[key] = r
	return r
}

// narrowed is the part of a reach where a label has one value.
func (w *world) narrowed(r *reach, key, value string) *reach {
	if got, ok := r.narrow[key][value]; ok {
		return got
	}
	return w.narrowTo(r, key, value, planning.In(value))
}

// labelled is the part of a reach where a label is set.
func (w *world) labelled(r *reach, key string) *reach {
	const name = "\x00set" // No label has this value.
	if got, ok := r.narrow[key][name]; ok {
		return got
	}
	return w.narrowTo(r, key, name, planning.NewValues(corev1.NodeSelectorOpExists))
}

// narrowTo makes the part of a reach where a label has one of some values, and keeps
// it under a name.
func (w *world) narrowTo(r *reach, key, name string, values planning.Values) *reach {
	out := w.part(r, key, name, values)
	if r.narrow == nil {
		r.narrow = map[string]map[string]*reach{}
	}
	if r.narrow[key] == nil {
		r.narrow[key] = map[string]*reach{}
	}
	r.narrow[key][name] = out
	return out
}

func (w *world) part(r *reach, key, name string, values planning.Values) *reach {
	if r.of == nil {
		return w.narrower(r, key, name, values)
	}
	all, ok := r.of.narrow[key][name]
	if !ok {
		all = w.removal.from.narrowTo(r.of, key, name, values)
	}
	return w.removal.remaining(w, all)
}

func (w *world) narrower(r *reach, key, name string, values planning.Values) *reach {
	out := *r
	out.narrow, out.holder = nil, nil
	out.want = r.want.WithRequirement(key, values)
	if slices.Contains(planning.OfferingLabels, key) {
		out.planes = r.planes & w.planesOf(planning.Requirements{key: values})
		if out.planes == 0 {
			out.columns = nil
		}
	} else {
		// What a class cannot use for other reasons stays out.
		out.columns = w.interned(w.columnsOf(&out).And(r.columns))
	}
	out.nodes = w.nodesOf(&out)
	out.key = r.key + "\x00" + key + "=" + name
	out.some = w.buyable(&out) || out.nodes.Len() > 0
	return &out
}

// buyable reports whether any of the columns is sold on any of the planes.
func (w *world) buyable(r *reach) bool {
	return r.planes != 0 && w.some(r, func(*packing.Column) bool { return true })
}

// some reports whether something holds for a column of the reach that is sold in
// it.
func (w *world) some(r *reach, holds func(*packing.Column) bool) bool {
	found := false
	r.columns.Each(func(k int) bool {
		column := &w.problem.Columns[k]
		found = slices.ContainsFunc(column.Offers, func(o packing.Offer) bool { return r.planes&(1<<o.Plane) != 0 }) && holds(column)
		return !found
	})
	return found
}

// planesOf are the planes on which the requirements hold.
func (w *world) planesOf(want planning.Requirements) uint64 {
	out := uint64(0)
	for i, plane := range w.planes {
		if want.AllowsOffering(plane) {
			out |= 1 << i
		}
	}
	return out
}

// columnsOf are the columns whose nodes could satisfy the requirements.
func (w *world) columnsOf(r *reach) packing.Set {
	out := packing.NewSet(len(w.columns))
	if host, ok := r.want[corev1.LabelHostname]; ok && !host.Has(placeholder) {
		return out
	}
	var typed rules
	for _, one := range rulesOf(r.want) {
		if w.typeKey(one.key) {
			typed = append(typed, one)
		}
	}
	for _, p := range w.pools {
		w.fromPool(r, p, typed, out)
	}
	return w.interned(out)
}

// interned is the one set of all that are equal, so that the packer sees which
// pods may go to the same columns.
func (w *world) interned(set packing.Set) packing.Set {
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

// fromPool adds the columns of one pool.
func (w *world) fromPool(r *reach, p *pool, typed rules, out packing.Set) {
	if _, kept := untolerated(p.taints, r.tolerate, r.relaxed); kept || p.from == p.to {
		return
	}
	suits := make([]bool, len(p.variants))
	for v := range p.variants {
		suits[v] = w.poolSuits(p.variants[v], r.want)
	}
	questions := make([]question, len(typed))
	for i, one := range typed {
		questions[i] = p.types.ask(one, one.values.AllowsAbsent() || p.gives(one))
	}
	for k := p.from; k < p.to; k++ {
		if c := &w.columns[k]; suits[c.variant] && (len(typed) == 0 || c.answers(questions, typed)) {
			out.Add(k)
		}
	}
}

// gives reports whether the pool gives its nodes a label that their type lacks.
func (p *pool) gives(one rule) bool {
	given, ok := p.base[one.key]
	return ok && !given.Intersect(one.values).IsEmpty()
}

// answers reports whether a column satisfies rules about what types decide.
func (c *column) answers(questions []question, rules rules) bool {
	if c.reservation != "" { // It has labels of its own.
		return rules.allow(c.labels, c.pool.base)
	}
	return allow(questions, c.at)
}

// poolSuits checks the labels that neither the type nor the offering decides.
func (w *world) poolSuits(base, want planning.Requirements) bool {
	for key, values := range want {
		if w.typeKey(key) || key == corev1.LabelHostname || slices.Contains(planning.OfferingLabels, key) {
			continue
		}
		offered := base.AllowedValues(key)
		if _, fixed := base[key]; !fixed && karpenter.WellKnownLabel(key) {
			offered = planning.AbsentValue() // No type here has it, and no pool says otherwise.
		}
		if offered.Intersect(values).IsEmpty() {
			return false
		}
	}
	return true
}

// rules are requirements as a list, which is faster to go through than a map.
type rules []rule

type rule struct {
	key    string
	values planning.Values
	// decided is whether a type without the label lacks it for good.
	decided bool
}

// rulesOf returns the requirements sorted by key.
func rulesOf(r planning.Requirements) rules {
	out := make(rules, 0, len(r))
	for _, key := range slices.Sorted(maps.Keys(r)) {
		out = append(out, rule{key, r[key], karpenter.WellKnownLabel(key) && !slices.Contains(planning.LabelsNotFromType, key)})
	}
	return out
}

// allow reports whether a node of a type with these labels could satisfy the
// rules. A label that the type lacks may still be given by the pool's base.
func (r rules) allow(labels map[string]string, base planning.Requirements) bool {
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
