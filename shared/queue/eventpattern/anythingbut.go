package eventpattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// anythingBut matches every leaf that its operand does not. The field has to
// be there.
func anythingBut(operand any) (matcher, error) {
	object, ok := operand.(map[string]any)
	if !ok {
		return exceptValues(operand)
	}
	operator, inner, err := only(object)
	if err != nil {
		return nil, err
	}
	compile, ok := exceptions[operator]
	if !ok {
		return nil, fmt.Errorf("%q cannot stand inside", operator)
	}
	values := asList(inner)
	if len(values) == 0 {
		return nil, errors.New("the list is empty")
	}
	return none(values, func(value any) (matcher, error) {
		if text, ok := value.(string); !ok || text == "" {
			return nil, fmt.Errorf("%s: %s must be a string that is not empty", operator, describe(value))
		}
		return compile(value)
	})
}

// exceptions are the operators that anything-but can turn around.
var exceptions = map[string]func(operand any) (matcher, error){
	"prefix":             affix(strings.HasPrefix, hasPrefixFold),
	"suffix":             affix(strings.HasSuffix, hasSuffixFold),
	"equals-ignore-case": foldEqual,
	"wildcard":           wildcard,
}

// exceptValues turns scalars around: all strings, or all numbers.
func exceptValues(operand any) (matcher, error) {
	values := asList(operand)
	var texts, numbers int
	for _, value := range values {
		switch value.(type) {
		case string:
			texts++
		case json.Number:
			numbers++
		default:
			return nil, fmt.Errorf("%s must be a string or a number", describe(value))
		}
	}
	if (texts == 0) == (numbers == 0) {
		return nil, errors.New("the list must hold strings alone or numbers alone")
	}
	return none(values, exactly)
}

// none matches what no compiled value matches.
func none(values []any, compile func(any) (matcher, error)) (matcher, error) {
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
