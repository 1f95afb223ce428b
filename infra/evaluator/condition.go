package evaluator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// condition is one operator on one key.
type condition struct {
	operator string
	set      quantifier
	// ifExists makes the condition true for a missing key.
	ifExists bool
	negated  bool
	match    func(p pattern, value string) bool
	key      string
	values   []pattern
}

// quantifier says how a condition treats a key with several values.
type quantifier int

const (
	single quantifier = iota
	forAll
	forAny
)

// null is the operator that tests whether a key exists.
const null = "Null"

// operators are the supported operators. Negated ones are true if the positive one is false,
// and if the key is missing.
var operators = map[string]struct {
	negated bool
	match   func(p pattern, value string) bool
}{
	"StringEquals":              {false, matchExact},
	"StringNotEquals":           {true, matchExact},
	"StringEqualsIgnoreCase":    {false, matchFold},
	"StringNotEqualsIgnoreCase": {true, matchFold},
	"StringLike":                {false, pattern.matches},
	"StringNotLike":             {true, pattern.matches},
	"ArnEquals":                 {false, pattern.matchesARN},
	"ArnLike":                   {false, pattern.matchesARN},
	"ArnNotEquals":              {true, pattern.matchesARN},
	"ArnNotLike":                {true, pattern.matchesARN},
	"Bool":                      {false, matchFold},
	null:                        {false, nil},
}

func matchExact(p pattern, value string) bool { return p.literalText() == value }
func matchFold(p pattern, value string) bool  { return strings.EqualFold(p.literalText(), value) }

// parseConditions parses a Condition element, in a fixed order.
func parseConditions(raw map[string]map[string]list) ([]condition, error) {
	var out []condition
	for _, operator := range slices.Sorted(maps.Keys(raw)) {
		for _, key := range slices.Sorted(maps.Keys(raw[operator])) {
			c, err := parseCondition(operator, key, raw[operator][key])
			if err != nil {
				return nil, fmt.Errorf("condition %s on %s: %w", operator, key, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func parseCondition(operator, key string, values list) (condition, error) {
	c := condition{operator: operator, key: strings.ToLower(key)}
	name := operator
	if rest, ok := strings.CutPrefix(name, "ForAllValues:"); ok {
		c.set, name = forAll, rest
	} else if rest, ok := strings.CutPrefix(name, "ForAnyValue:"); ok {
		c.set, name = forAny, rest
	}
	name, c.ifExists = strings.CutSuffix(name, "IfExists")
	known, ok := operators[name]
	if !ok {
		return c, errors.New("the operator is not supported")
	}
	c.negated, c.match = known.negated, known.match
	if len(values) == 0 {
		return c, errors.New("it has no value")
	}
	if c.match == nil && (c.set != single || c.ifExists || len(values) != 1 || values[0] != "true" && values[0] != "false") {
		return c, errors.New("the operator Null has one value, true or false")
	}
	for _, text := range values {
		p, err := compilePattern(text)
		if err != nil {
			return c, fmt.Errorf("value %q: %w", text, err)
		}
		c.values = append(c.values, p)
	}
	return c, nil
}

// isMet reports whether the request meets the condition.
func (c condition) isMet(request context) (bool, error) {
	have := request[c.key]
	if c.match == nil {
		return isEmpty(have) == (c.values[0].literalText() == "true"), nil
	}
	if len(have) == 0 {
		// A missing key fails the condition, except with IfExists, with a negated operator, and
		// with ForAllValues, which is true for the empty set.
		return c.ifExists || c.set == forAll || c.negated && c.set == single, nil
	}
	if c.set == single && len(have) > 1 {
		return false, fmt.Errorf("%s on %s: the key has %d values, which only set operators support", c.operator, c.key, len(have))
	}
	if c.set == forAll && isEmpty(have) {
		return true, nil
	}
	for _, value := range have {
		met, err := c.matchesValue(value, request)
		if err != nil {
			return false, err
		}
		if met != (c.set == forAll) {
			// One value decides: it fails ForAllValues, or satisfies the others.
			return met, nil
		}
	}
	return c.set == forAll, nil
}

// isEmpty reports whether Null treats the values as null and ForAllValues as the empty set:
// there is no value except the empty string.
func isEmpty(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return v != "" })
}

// matchesValue reports whether the value matches one of the policy's values or, for a negated
// operator, no value of the key.
func (c condition) matchesValue(value string, request context) (bool, error) {
	for _, p := range c.values {
		filled, ok := p.fillVariables(request)
		if !ok {
			if c.negated {
				return false, fmt.Errorf("%s on %s: a variable has no value, and a negated comparison with it is not supported", c.operator, c.key)
			}
			continue
		}
		if c.match(filled, value) {
			return !c.negated, nil
		}
	}
	return c.negated, nil
}
