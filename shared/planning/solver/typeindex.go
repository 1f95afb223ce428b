package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

import "slices"

// typeIndex answers what pools ask of one list of instance types. Several pools
// mostly share a list and ask for the same labels, so a label is read from a type
// once, when somebody first wants to know, and what a type has is counted once.
type typeIndex struct {
	types  []instancetypes.Type
	labels map[string]*labelIndex
	// capacity and room are those of each type, made when they are first asked for.
	capacity, room []amounts
	arena          []int64
}

// labelIndex is one label: the values that were seen, and which of them each type
// has.
type labelIndex struct {
	key    string
	values []string
	known  map[string]int32
	// of is by type: the place of its value, or one of the two below.
	of   []int32
	last int32
}

const (
	unread int32 = -1
	absent int32 = -2
)

// index finds the index of a list. The lists of a stock do not change.
func (w *world) index(types []instancetypes.Type) *typeIndex {
	if len(types) == 0 {
		return &typeIndex{labels: map[string]*labelIndex{}}
	}
	if got, ok := w.indexes[&types[0]]; ok {
		return got
	}
	out := &typeIndex{
		types: types, labels: map[string]*labelIndex{}, capacity: make([]amounts, len(types)), room: make([]amounts, len(types)),
		arena: make([]int64, 0, 2*len(types)*len(w.axis.names)),
	}
	if w.indexes == nil {
		w.indexes = map[*instancetypes.Type]*typeIndex{}
	}
	w.indexes[&types[0]] = out
	return out
}

func (x *typeIndex) label(key string) *labelIndex {
	if got, ok := x.labels[key]; ok {
		return got
	}
	out := &labelIndex{key: key, known: map[string]int32{}, of: make([]int32, len(x.types))}
	for i := range out.of {
		out.of[i] = unread
	}
	x.labels[key] = out
	return out
}

// read is the place of the value that the i-th type has.
func (l *labelIndex) read(t *instancetypes.Type, i int) int32 {
	if l.of[i] != unread {
		return l.of[i]
	}
	value, ok := t.Labels[l.key]
	if !ok {
		l.of[i] = absent
		return absent
	}
	// Neighbours are of one family, and mostly have the same value.
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

// allowed are the types of which a node could satisfy the rules, as rules.allow
// finds them for a pool's own. It asks all of one type before it goes on to the next,
// while the type's labels are at hand.
func (x *typeIndex) allowed(rules rules) []int {
	questions := make([]question, 0, len(rules))
	for _, by := range rules {
		switch {
		case !slices.Contains(planning.LabelsNotFromType, by.key): // Those no type has.
			questions = append(questions, x.ask(by, by.values.AllowsAbsent() || !by.decided))
		case by.values.IsEmpty():
			return nil
		}
	}
	out := make([]int, 0, len(x.types))
	for i := range x.types {
		if allow(questions, i) {
			out = append(out, i)
		}
	}
	return out
}

// allow reports whether all answers for the i-th type are yes.
func allow(questions []question, i int) bool {
	for q := range questions {
		if !questions[q].allows(i) {
			return false
		}
	}
	return true
}

// question is a rule that is asked of many types: each value is looked at once.
type question struct {
	types []instancetypes.Type
	label *labelIndex
	by    rule
	// without is the answer for types without the label.
	without  bool
	verdicts []bool
}

func (x *typeIndex) ask(by rule, without bool) question {
	return question{types: x.types, label: x.label(by.key), by: by, without: without}
}

// allows is the answer for the i-th type.
func (q *question) allows(i int) bool {
	value := q.label.read(&q.types[i], i)
	if value == absent {
		return q.without
	}
	for len(q.verdicts) <= int(value) {
		q.verdicts = append(q.verdicts, q.by.values.Has(q.label.values[len(q.verdicts)]))
	}
	return q.verdicts[value]
}

// capacityOf is what a node of the i-th type counts for in limits, and roomOf what
// pods may take of it. They are shared: who changes one clones it.
func (x *typeIndex) capacityOf(a axis, i int) amounts {
	if x.capacity[i] == nil {
		x.capacity[i] = a.into(&x.arena, x.types[i].Capacity)
	}
	return x.capacity[i]
}

func (x *typeIndex) roomOf(a axis, i int) amounts {
	if x.room[i] == nil {
		t := &x.types[i]
		x.room[i] = a.open(a.into(&x.arena, t.Allocatable), t.Allocatable)
	}
	return x.room[i]
}
