package scheduling

import "slices"

// typeIndex answers what pools ask of one list of instance types. Several pools
// mostly share a list and ask for the same labels, so each label is read once from
// every type, and what a type has is counted once.
type typeIndex struct {
	types  []Type
	labels map[string]labelIndex
	// capacity and room are those of each type, made when they are first asked for.
	capacity, room []amounts
	arena          []int64
}

// labelIndex is one label of all types: its values, and which of them each type
// has, -1 for none.
type labelIndex struct {
	values []string
	of     []int32
}

// index finds the index of a list. The lists of a stock do not change.
func (w *world) index(types []Type) *typeIndex {
	if len(types) == 0 {
		return &typeIndex{labels: map[string]labelIndex{}}
	}
	if got, ok := w.indexes[&types[0]]; ok {
		return got
	}
	out := &typeIndex{
		types: types, labels: map[string]labelIndex{}, capacity: make([]amounts, len(types)), room: make([]amounts, len(types)),
		arena: make([]int64, 0, 2*len(types)*len(w.axis.names)),
	}
	if w.indexes == nil {
		w.indexes = map[*Type]*typeIndex{}
	}
	w.indexes[&types[0]] = out
	return out
}

func (x *typeIndex) label(key string) labelIndex {
	if got, ok := x.labels[key]; ok {
		return got
	}
	out, known, last := labelIndex{of: make([]int32, len(x.types))}, map[string]int32{}, int32(-1)
	for i := range x.types {
		value, ok := x.types[i].Labels[key]
		if !ok {
			out.of[i] = -1
			continue
		}
		// Neighbours are of one family, and mostly have the same value.
		if last < 0 || out.values[last] != value {
			if last, ok = known[value]; !ok {
				last = int32(len(out.values))
				known[value], out.values = last, append(out.values, value)
			}
		}
		out.of[i] = last
	}
	x.labels[key] = out
	return out
}

// allowed says of each type whether a node of it could satisfy the rules, as
// rules.allow does for a pool's own.
func (x *typeIndex) allowed(rules rules) []bool {
	out := make([]bool, len(x.types))
	for i := range out {
		out[i] = true
	}
	var verdicts []bool
	for j := range rules {
		if slices.Contains(openLabels, rules[j].key) {
			continue // No type has it.
		}
		one, labels := &rules[j], x.label(rules[j].key)
		without := one.values.HasAbsent() || !one.decided
		verdicts = verdicts[:0]
		for _, value := range labels.values {
			verdicts = append(verdicts, one.values.Has(value))
		}
		for i, value := range labels.of {
			if value < 0 {
				out[i] = out[i] && without
			} else {
				out[i] = out[i] && verdicts[value]
			}
		}
	}
	return out
}

// amounts are what a node of the i-th type has, and what pods may take of it. They
// are shared: who changes one clones it.
func (x *typeIndex) amounts(a axis, i int) (capacity, room amounts) {
	if x.capacity[i] == nil {
		t := &x.types[i]
		x.capacity[i] = a.into(&x.arena, t.Capacity)
		x.room[i] = a.open(a.into(&x.arena, t.Allocatable), t.Allocatable)
	}
	return x.capacity[i], x.room[i]
}
