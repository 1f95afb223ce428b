package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// typeIndex answers what pools ask of one list of instance types. Several pools
// mostly share a list and ask for the same labels, so a label is read from a type
// once, on first use, and the resources of a type are counted once.
type typeIndex struct {
	types  []instancetypes.Type
	labels map[string]*labelIndex
	// capacity and allocatable are by type, computed on first use.
	capacity, allocatable []amounts
	arena                 []int64
}

// labelIndex is one label: its values, and which value each type has.
type labelIndex struct {
	key    string
	values []string
	known  map[string]int32
	// of holds, by type, the index of its value, or one of the constants below.
	of   []int32
	last int32
}

const (
	unreadValue int32 = -1
	absentValue int32 = -2
)

// findTypeIndex returns the index of a list. The list must not change.
func (w *state) findTypeIndex(types []instancetypes.Type) *typeIndex {
	if len(types) == 0 {
		return &typeIndex{labels: map[string]*labelIndex{}}
	}
	if got, ok := w.indexes[&types[0]]; ok {
		return got
	}
	out := &typeIndex{
		types: types, labels: map[string]*labelIndex{}, capacity: make([]amounts, len(types)), allocatable: make([]amounts, len(types)),
		arena: make([]int64, 0, 2*len(types)*len(w.resources.names)),
	}
	if w.indexes == nil {
		w.indexes = map[*instancetypes.Type]*typeIndex{}
	}
	w.indexes[&types[0]] = out
	return out
}

func (x *typeIndex) findLabel(key string) *labelIndex {
	if got, ok := x.labels[key]; ok {
		return got
	}
	out := &labelIndex{key: key, known: map[string]int32{}, of: make([]int32, len(x.types))}
	for i := range out.of {
		out.of[i] = unreadValue
	}
	x.labels[key] = out
	return out
}

// readType returns the index of the i-th type's value, or absentValue.
func (l *labelIndex) readType(t *instancetypes.Type, i int) int32 {
	if l.of[i] != unreadValue {
		return l.of[i]
	}
	value, ok := t.Labels[l.key]
	if !ok {
		l.of[i] = absentValue
		return absentValue
	}
	// Neighboring types are of one family, and mostly have the same value.
	if len(l.values) == 0 || l.values[l.last] != value {
		at, ok := l.known[value]
		if !ok {
			at = int32(len(l.values))
			l.known[value], l.values = at, append(l.values, value)
		}
		l.last = at
	}
	l.of[i] = l.last
	return l.last
}

// filterTypes returns the indexes of the types that could meet the rules, as allowLabels decides for a
// pool's own rules. It checks all rules of one type before the next type, while the type's labels are
// in the CPU cache.
func (x *typeIndex) filterTypes(rules labelRules) []int {
	questions := make([]typeFilter, 0, len(rules))
	for _, by := range rules {
		switch {
		case !slices.Contains(planning.LabelsNotFromType, by.key): // No type has the other labels.
			questions = append(questions, x.newPoolFilter(by))
		case by.values.IsEmpty():
			return nil
		}
	}
	out := make([]int, 0, len(x.types))
	for i := range x.types {
		if allAllow(questions, i) {
			out = append(out, i)
		}
	}
	return out
}

// allAllow reports whether all filters allow the i-th type.
func allAllow(questions []typeFilter, i int) bool {
	for q := range questions {
		if !questions[q].allowsType(i) {
			return false
		}
	}
	return true
}

// typeFilter is a rule applied to many types; it checks each value once.
type typeFilter struct {
	types []instancetypes.Type
	label *labelIndex
	rule  labelRule
	// allowsAbsent is the result for types without the label.
	allowsAbsent bool
	decisions    []bool
}

func (x *typeIndex) newFilter(by labelRule, without bool) typeFilter {
	return typeFilter{types: x.types, label: x.findLabel(by.key), rule: by, allowsAbsent: without}
}

// newPoolFilter returns the filter for a requirement of a pool: it gives its nodes custom labels, but only the type sets
// well-known ones.
func (x *typeIndex) newPoolFilter(by labelRule) typeFilter {
	return x.newFilter(by, by.values.AllowsAbsent() || !karpenter.IsWellKnownLabel(by.key))
}

// allowsType reports whether the rule allows the i-th type.
func (q *typeFilter) allowsType(i int) bool {
	value := q.label.readType(&q.types[i], i)
	if value == absentValue {
		return q.allowsAbsent
	}
	for len(q.decisions) <= int(value) {
		q.decisions = append(q.decisions, q.rule.values.Has(q.label.values[len(q.decisions)]))
	}
	return q.decisions[value]
}

// capacityOf returns what a node of the i-th type counts for in limits, and allocatableOf what pods
// may use. The results are shared; clone them before a change.
func (x *typeIndex) capacityOf(a resourceIndex, i int) amounts {
	if x.capacity[i] == nil {
		x.capacity[i] = a.toAmountsIn(&x.arena, x.types[i].Capacity)
	}
	return x.capacity[i]
}

func (x *typeIndex) allocatableOf(a resourceIndex, i int) amounts {
	if x.allocatable[i] == nil {
		t := &x.types[i]
		x.allocatable[i] = a.setUnreportedLimits(a.toAmountsIn(&x.arena, t.Allocatable), t.Allocatable)
	}
	return x.allocatable[i]
}
