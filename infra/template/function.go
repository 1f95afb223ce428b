package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// functions are the intrinsic functions that depend on their arguments only
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html).
var functions = map[string]func(in []any) (any, error){
	"Fn::Join":   joinTexts,
	"Fn::Select": selectItem,
	"Fn::Split":  splitText,
	"Fn::Equals": equalValues,
	"Fn::Not":    notCondition,
	"Fn::And":    andConditions,
	"Fn::Or":     orConditions,
}

func joinTexts(in []any) (any, error) {
	parts, ok := secondArgument[[]any](in)
	if !ok {
		return nil, fmt.Errorf("%v is not a delimiter and a list", in)
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = fmt.Sprint(p)
	}
	return strings.Join(texts, fmt.Sprint(in[0])), nil
}

func selectItem(in []any) (any, error) {
	list, ok := secondArgument[[]any](in)
	if !ok {
		return nil, fmt.Errorf("%v is not an index and a list", in)
	}
	i, err := strconv.Atoi(fmt.Sprint(in[0]))
	if err != nil || i < 0 || i >= len(list) {
		return nil, fmt.Errorf("no item %v among %d", in[0], len(list))
	}
	return list[i], nil
}

func splitText(in []any) (any, error) {
	text, ok := secondArgument[string](in)
	if !ok {
		return nil, fmt.Errorf("%v is not a delimiter and a text", in)
	}
	var out []any
	for part := range strings.SplitSeq(text, fmt.Sprint(in[0])) {
		out = append(out, part)
	}
	return out, nil
}

// equalValues compares texts, as CloudFormation does: 1 equals "1".
func equalValues(in []any) (any, error) {
	if len(in) != 2 {
		return nil, fmt.Errorf("%v are not two values", in)
	}
	return fmt.Sprint(in[0]) == fmt.Sprint(in[1]), nil
}

func notCondition(in []any) (any, error) {
	all, err := parseConditions(in, 1, 1)
	return err == nil && !all[0], err
}

func andConditions(in []any) (any, error) {
	all, err := parseConditions(in, 2, 10)
	return err == nil && !slices.Contains(all, false), err
}

func orConditions(in []any) (any, error) {
	all, err := parseConditions(in, 2, 10)
	return err == nil && slices.Contains(all, true), err
}

// parseConditions returns the arguments as booleans and checks their number.
func parseConditions(in []any, least, most int) ([]bool, error) {
	if len(in) < least || len(in) > most {
		return nil, fmt.Errorf("%d conditions", len(in))
	}
	all := make([]bool, len(in))
	for i, one := range in {
		yes, ok := one.(bool)
		if !ok {
			return nil, fmt.Errorf("%v is not a condition", one)
		}
		all[i] = yes
	}
	return all, nil
}

// secondArgument returns the second of two arguments if it is a T.
func secondArgument[T any](in []any) (T, bool) {
	if len(in) != 2 {
		var none T
		return none, false
	}
	v, ok := in[1].(T)
	return v, ok
}
