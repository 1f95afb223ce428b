// Package eventpattern implements EventBridge event patterns: which events a pattern matches.
//
// A pattern is a JSON object like the event, whose leaves are lists. All its fields must match (and), a field matches
// any entry of its list (or), and "$or" combines whole objects. Fields that the pattern does not contain are ignored.
// A field under an array matches if one element does, and fields under the same array must match in the same element.
//
// Compile rejects what EventBridge rejects, so that a test finds a rule that AWS would not accept. Both functions are
// pure.
package eventpattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// MaxAlternatives is the maximum number of combinations of a pattern's "$or"s. EventBridge rejects more.
const MaxAlternatives = 1000

// Pattern is a compiled pattern, safe for concurrent use.
type Pattern struct {
	// alternatives is the pattern in disjunctive normal form: it matches if every field of one alternative does.
	alternatives [][]field
}

// field is one leaf of a pattern.
type field struct {
	path     string
	matchers []matcher
	// absent is set by {"exists": false}: the field also matches if the event has no leaf with the path.
	absent bool
}

// Compile compiles a pattern. It returns fault.Invalid for what EventBridge rejects.
func Compile(text []byte) (*Pattern, error) {
	tree, err := decodeJSON(text)
	if err != nil {
		return nil, fault.E("compiling an event pattern", fault.Invalid, err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, fault.F("compiling an event pattern", fault.Invalid, "the value is %s, not an object", describeValue(tree))
	}
	alternatives, err := compileObject("", object)
	if err != nil {
		return nil, fault.E("compiling an event pattern", fault.Invalid, err)
	}
	return &Pattern{alternatives: alternatives}, nil
}

// compileObject compiles an object into its alternatives.
func compileObject(path string, object map[string]any) ([][]field, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("%s: an empty object selects nothing", pathName(path))
	}
	all := [][]field{nil}
	for _, name := range sortedKeys(object) {
		some, err := compileMember(path, name, object[name])
		if err != nil {
			return nil, err
		}
		if len(all)*len(some) > MaxAlternatives {
			return nil, fmt.Errorf("%s: its $or lists produce more than %d combinations", pathName(path), MaxAlternatives)
		}
		if all, err = joinAlternatives(all, some); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// compileMember compiles one member of an object into alternatives.
func compileMember(path, name string, value any) ([][]field, error) {
	if list, ok := parseOr(name, value); ok {
		return compileOr(path, list)
	}
	below := name
	if path != "" {
		below = path + "." + name
	}
	switch value := value.(type) {
	case map[string]any:
		return compileObject(below, value)
	case []any:
		leaf, err := compileLeaf(below, value)
		return [][]field{{leaf}}, err
	default:
		return nil, fmt.Errorf("%s: %s must be in an object or an array", below, describeValue(value))
	}
}

// compileOr returns the alternatives of all objects.
func compileOr(path string, list []map[string]any) ([][]field, error) {
	var all [][]field
	for _, object := range list {
		some, err := compileObject(path, object)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// operators are the names that make an object in a list a match expression.
var operators = []string{
	"exactly", "prefix", "suffix", "equals-ignore-case", "wildcard", "anything-but", "numeric", "exists", "cidr",
}

// parseOr reports whether the member is an "or" of objects. If the array can be a list of match expressions, "$or" is
// an ordinary name.
func parseOr(name string, value any) ([]map[string]any, bool) {
	list, ok := value.([]any)
	if name != "$or" || !ok || len(list) < 2 {
		return nil, false
	}
	objects := make([]map[string]any, 0, len(list))
	for _, entry := range list {
		object, ok := entry.(map[string]any)
		if !ok {
			return nil, false
		}
		for key := range object {
			if slices.Contains(operators, key) {
				return nil, false
			}
		}
		objects = append(objects, object)
	}
	return objects, true
}

// joinAlternatives combines each alternative of a with each of b. It rejects a field in both: EventBridge would use
// only the last one.
func joinAlternatives(a, b [][]field) ([][]field, error) {
	out := make([][]field, 0, len(a)*len(b))
	for _, left := range a {
		for _, right := range b {
			for _, f := range right {
				if slices.ContainsFunc(left, func(other field) bool { return other.path == f.path }) {
					return nil, fmt.Errorf("%s: the field is both inside and outside of an $or, or is there twice", f.path)
				}
			}
			out = append(out, slices.Concat(left, right))
		}
	}
	return out, nil
}

// decodeJSON decodes one JSON value and keeps numbers as text.
func decodeJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return tree, nil
}
