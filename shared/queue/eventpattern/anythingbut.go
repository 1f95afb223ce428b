package eventpattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// compileAnythingBut matches every leaf that its operand does not match. The field must exist.
func compileAnythingBut(operand any) (matcher, error) {
	object, ok := operand.(map[string]any)
	if !ok {
		return matchOtherValues(operand)
	}
	operator, inner, err := singleMember(object)
	if err != nil {
		return nil, err
	}
	compile, ok := invertibleOperators[operator]
	if !ok {
		return nil, fmt.Errorf("%q is not allowed here", operator)
	}
	values := asList(inner)
	if len(values) == 0 {
		return nil, errors.New("the list is empty")
	}
	return matchNone(values, func(value any) (matcher, error) {
		if text, ok := value.(string); !ok || text == "" {
			return nil, fmt.Errorf("%s: %s must be a non-empty string", operator, describeValue(value))
		}
		return compile(value)
	})
}

// invertibleOperators are the operators that anything-but can negate.
var invertibleOperators = map[string]func(operand any) (matcher, error){
	"prefix":             compileAffix(strings.HasPrefix, hasPrefixFold),
	"suffix":             compileAffix(strings.HasSuffix, hasSuffixFold),
	"equals-ignore-case": compileIgnoreCase,
	"wildcard":           compileWildcard,
}

// matchOtherValues negates scalars: all strings, or all numbers.
func matchOtherValues(operand any) (matcher, error) {
	values := asList(operand)
	var texts, numbers int
	for _, value := range values {
		switch value.(type) {
		case string:
			texts++
		case json.Number:
			numbers++
		default:
			return nil, fmt.Errorf("%s must be a string or a number", describeValue(value))
		}
	}
	if (texts == 0) == (numbers == 0) {
		return nil, errors.New("the list must contain only strings or only numbers")
	}
	return matchNone(values, matchScalar)
}

// matchNone matches a leaf that no compiled value matches.
func matchNone(values []any, compile func(any) (matcher, error)) (matcher, error) {
	var matchers []matcher
	for _, value := range values {
		m, err := compile(value)
		if err != nil {
			return nil, err
		}
		matchers = append(matchers, m)
	}
	return func(leaf any) bool {
		for _, m := range matchers {
			if m(leaf) {
				return false
			}
		}
		return true
	}, nil
}

func asList(operand any) []any {
	if list, ok := operand.([]any); ok {
		return list
	}
	return []any{operand}
}
