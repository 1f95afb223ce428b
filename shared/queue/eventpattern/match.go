package eventpattern

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// MaxEvent is the maximum size of an event in bytes, as in EventBridge.
const MaxEvent = 256 << 10

// leaf is one scalar of an event, with the array elements that contain it.
type leaf struct {
	value any
	in    arrayIndexes
}

// arrayIndexes maps arrays, numbered in order of appearance, to the index of an element.
type arrayIndexes map[int]int

// matchesIndexes reports whether a and b have no array with different elements.
func (a arrayIndexes) matchesIndexes(b arrayIndexes) bool {
	for array, element := range b {
		if mine, ok := a[array]; ok && mine != element {
			return false
		}
	}
	return true
}

// Match reports whether the pattern matches the event, a JSON object. It returns fault.Invalid if the event is not
// one.
func (p *Pattern) Match(event []byte) (bool, error) {
	fields, err := ReadFields(event)
	return err == nil && p.MatchFields(fields), err
}

// EventFields are the fields of an event, which several patterns can match.
type EventFields struct{ leaves map[string][]leaf }

// ReadFields reads an event, a JSON object. It returns fault.Invalid if the event is not one.
func ReadFields(event []byte) (EventFields, error) {
	if len(event) > MaxEvent {
		return EventFields{}, fault.F("matching an event", fault.Invalid, "%d bytes exceed the limit of %d", len(event), MaxEvent)
	}
	tree, err := decodeJSON(event)
	if err != nil {
		return EventFields{}, fault.E("matching an event", fault.Invalid, err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return EventFields{}, fault.F("matching an event", fault.Invalid, "the value is %s, not an object", describeValue(tree))
	}
	f := flattener{leaves: map[string][]leaf{}}
	f.flattenValue("", object, arrayIndexes{})
	return EventFields{f.leaves}, nil
}

// MatchFields reports whether the pattern matches the event.
func (p *Pattern) MatchFields(event EventFields) bool {
	for _, fields := range p.alternatives {
		if matchAll(fields, event.leaves, arrayIndexes{}) {
			return true
		}
	}
	return false
}

// matchAll finds a leaf for each field such that all are in the same array elements.
func matchAll(fields []field, leaves map[string][]leaf, in arrayIndexes) bool {
	if len(fields) == 0 {
		return true
	}
	head, rest := fields[0], fields[1:]
	candidates := leaves[head.path]
	if head.absent && len(candidates) == 0 {
		return matchAll(rest, leaves, in)
	}
	for _, l := range candidates {
		if !in.matchesIndexes(l.in) || !head.matchesValue(l.value) {
			continue
		}
		both := maps.Clone(in)
		maps.Copy(both, l.in)
		if matchAll(rest, leaves, both) {
			return true
		}
	}
	return false
}

func (f field) matchesValue(value any) bool {
	for _, m := range f.matchers {
		if m(value) {
			return true
		}
	}
	return false
}

// flattener lists the leaves of an event by path. Paths do not contain array indexes.
type flattener struct {
	arrays int
	leaves map[string][]leaf
}

func (f *flattener) flattenValue(path string, value any, in arrayIndexes) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			below := name
			if path != "" {
				below = path + "." + name
			}
			f.flattenValue(below, value[name], in)
		}
	case []any:
		array := f.arrays
		f.arrays++
		for i, element := range value {
			inside := maps.Clone(in)
			inside[array] = i
			f.flattenValue(path, element, inside)
		}
	default:
		f.leaves[path] = append(f.leaves[path], leaf{value: value, in: in})
	}
}
