package eventpattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// matcher reports whether one leaf of an event matches: a string, json.Number, bool or nil.
type matcher func(leaf any) bool

// compileLeaf compiles the list of a field.
func compileLeaf(path string, list []any) (field, error) {
	out := field{path: path}
	if len(list) == 0 {
		return out, fmt.Errorf("%s: an empty array selects nothing", path)
	}
	for _, entry := range list {
		object, ok := entry.(map[string]any)
		if !ok {
			exact, err := matchScalar(entry)
			if err != nil {
				return out, fmt.Errorf("%s: %w", path, err)
			}
			out.matchers = append(out.matchers, exact)
			continue
		}
		if err := out.compileExpression(object); err != nil {
			return out, fmt.Errorf("%s: %w", path, err)
		}
	}
	return out, nil
}

// compileExpression adds {"operator": operand}.
func (f *field) compileExpression(object map[string]any) error {
	operator, operand, err := singleMember(object)
	if err != nil {
		return err
	}
	if operator == "exists" {
		return f.compileExists(operand)
	}
	compile, ok := expressions[operator]
	if !ok {
		return fmt.Errorf("unknown operator %q", operator)
	}
	m, err := compile(operand)
	if err != nil {
		return fmt.Errorf("%s: %w", operator, err)
	}
	f.matchers = append(f.matchers, m)
	return nil
}

func (f *field) compileExists(operand any) error {
	exists, ok := operand.(bool)
	switch {
	case !ok:
		return fmt.Errorf("exists: %s must be true or false", describeValue(operand))
	case exists:
		f.matchers = append(f.matchers, func(any) bool { return true })
	default:
		f.absent = true
	}
	return nil
}

var expressions = map[string]func(operand any) (matcher, error){
	"exactly":            compileExactly,
	"prefix":             compileAffix(strings.HasPrefix, hasPrefixFold),
	"suffix":             compileAffix(strings.HasSuffix, hasSuffixFold),
	"equals-ignore-case": compileIgnoreCase,
	"wildcard":           compileWildcard,
	"anything-but":       compileAnythingBut,
	"numeric":            compileNumeric,
	"cidr":               compileCIDR,
}

// matchScalar matches a scalar. Numbers are equal if their texts or their values are equal.
func matchScalar(operand any) (matcher, error) {
	switch operand := operand.(type) {
	case map[string]any, []any:
		return nil, fmt.Errorf("%s must be a string, a number, true, false or null", describeValue(operand))
	case json.Number:
		return func(leaf any) bool {
			number, ok := leaf.(json.Number)
			return ok && (number == operand || areEqualNumbers(number, operand))
		}, nil
	default:
		return func(leaf any) bool { return leaf == operand }, nil
	}
}

// compileExactly matches a string; {"exactly": …} accepts only strings.
func compileExactly(operand any) (matcher, error) {
	if _, ok := operand.(string); !ok {
		return nil, fmt.Errorf("%s must be a string", describeValue(operand))
	}
	return matchScalar(operand)
}

// compileAffix matches a prefix or suffix of strings, case-sensitively or, for {"equals-ignore-case": …}, in any
// case.
func compileAffix(has, hasFold func(s, part string) bool) func(operand any) (matcher, error) {
	return func(operand any) (matcher, error) {
		test := has
		if object, ok := operand.(map[string]any); ok {
			operator, inner, err := singleMember(object)
			if err != nil {
				return nil, err
			}
			if operator != "equals-ignore-case" {
				return nil, fmt.Errorf("%q is not allowed here", operator)
			}
			operand, test = inner, hasFold
		}
		part, ok := operand.(string)
		if !ok {
			return nil, fmt.Errorf("%s must be a string", describeValue(operand))
		}
		return matchString(func(s string) bool { return test(s, part) }), nil
	}
}

// compileIgnoreCase matches a string in any case.
func compileIgnoreCase(operand any) (matcher, error) {
	want, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("%s must be a string", describeValue(operand))
	}
	return matchString(func(s string) bool { return strings.EqualFold(s, want) }), nil
}

// compileCIDR matches strings that are addresses in the block. EventBridge rejects a block of one address or of
// IPv4-mapped addresses.
func compileCIDR(operand any) (matcher, error) {
	text, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("%s must be a string", describeValue(operand))
	}
	block, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, err
	}
	if block.IsSingleIP() || block.Addr().Is4In6() {
		return nil, fmt.Errorf("%s must be a CIDR of two or more addresses and not IPv4-mapped IPv6", describeValue(operand))
	}
	return matchString(func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && block.Contains(address)
	}), nil
}

func matchString(test func(string) bool) matcher {
	return func(leaf any) bool {
		s, ok := leaf.(string)
		return ok && test(s)
	}
}

// These functions compare runes, because upper and lower case may differ in length in bytes.
func hasPrefixFold(s, part string) bool {
	text, want := []rune(s), []rune(part)
	return len(text) >= len(want) && strings.EqualFold(string(text[:len(want)]), part)
}

func hasSuffixFold(s, part string) bool {
	text, want := []rune(s), []rune(part)
	return len(text) >= len(want) && strings.EqualFold(string(text[len(text)-len(want):]), part)
}

// singleMember returns the only member of an object.
func singleMember(object map[string]any) (name string, value any, err error) {
	if len(object) != 1 {
		return "", nil, errors.New("a match expression has exactly one operator")
	}
	for name, value = range object {
		return name, value, nil
	}
	return "", nil, nil
}

func sortedKeys(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

func pathName(path string) string {
	if path == "" {
		return "the pattern"
	}
	return path
}

// describeValue describes a JSON value for an error.
func describeValue(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return fmt.Sprintf("%q", value)
	default:
		return fmt.Sprint(value)
	}
}
