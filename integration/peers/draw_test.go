package peers

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// The drawn language is small, so that patterns often meet events: three
// fields, and words of two letters.
var (
	names   = []string{"a", "b", "c"}
	words   = rapid.StringOfN(rapid.RuneFrom([]rune("aAb")), 1, 3, -1)
	numbers = rapid.SampledFrom([]float64{-1, 0, 0.5, 1, 2, 300, 301.8, 1e6, -2.25})
	blocks  = rapid.SampledFrom([]string{"10.0.0.0/8", "10.0.0.0/30", "10.0.0.2/31", "2001:db8::/32"})
	hosts   = rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.9.0.1", "11.0.0.1", "2001:db8::1", "2002::1"})
)

// object is a JSON object.
type object = map[string]any

func text(t *rapid.T, value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func drawEvent(t *rapid.T) string {
	return text(t, fields(t, names, func() any { return eventValue(t, 2) }))
}

// fields draws an object of one to three members.
func fields(t *rapid.T, names []string, value func() any) object {
	out := object{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "names") {
		out[name] = value()
	}
	return out
}

func eventValue(t *rapid.T, depth int) any {
	kinds := []string{"word", "word", "number", "number", "host", "true", "null"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "array")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "word":
		return words.Draw(t, "word")
	case "number":
		return numbers.Draw(t, "number")
	case "host":
		return hosts.Draw(t, "host")
	case "true":
		return rapid.Bool().Draw(t, "bool")
	case "object":
		return fields(t, names, func() any { return eventValue(t, depth-1) })
	case "array":
		var list []any
		for range rapid.IntRange(1, 3).Draw(t, "elements") {
			list = append(list, eventValue(t, depth-1))
		}
		return list
	}
	return nil
}

func drawPattern(t *rapid.T) string { return text(t, patternObject(t, names, 2)) }

// patternObject draws an object of fields of these names. No field stands both
// inside and outside of an $or, for which we refuse a pattern.
func patternObject(t *rapid.T, names []string, depth int) object {
	out := fields(t, names, func() any { return patternValue(t, depth) })
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return out[name] != nil })
	if depth > 0 && len(rest) > 0 && rapid.Bool().Draw(t, "or") {
		out["$or"] = []any{patternObject(t, rest, depth-1), patternObject(t, rest, depth-1)}
	}
	return out
}

func patternValue(t *rapid.T, depth int) any {
	if depth > 0 && rapid.IntRange(0, 2).Draw(t, "nest") == 0 {
		return patternObject(t, names, depth-1)
	}
	var list []any
	for range rapid.IntRange(1, 2).Draw(t, "alternatives") {
		list = append(list, matcher(t))
	}
	return list
}

// matcher draws one entry of a field's list.
func matcher(t *rapid.T) any {
	switch rapid.SampledFrom([]string{
		"word", "number", "bool", "null", "prefix", "suffix", "fold", "wildcard", "but", "buts", "not", "compare", "range", "exists", "cidr",
	}).Draw(t, "matcher") {
	case "word":
		return words.Draw(t, "word")
	case "number":
		return numbers.Draw(t, "number")
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "prefix":
		return object{"prefix": affixOperand(t)}
	case "suffix":
		return object{"suffix": affixOperand(t)}
	case "fold":
		return object{"equals-ignore-case": words.Draw(t, "word")}
	case "wildcard":
		return object{"wildcard": stars(t)}
	case "but":
		return object{"anything-but": words.Draw(t, "word")}
	case "buts":
		return object{"anything-but": rapid.SliceOfN(numbers, 1, 2).Draw(t, "numbers")}
	case "not":
		return object{"anything-but": exception(t)}
	case "compare":
		return object{"numeric": []any{comparison(t, "=", "<", "<=", ">", ">="), numbers.Draw(t, "bound")}}
	case "range":
		low, high := numbers.Draw(t, "low"), numbers.Draw(t, "high")
		return object{"numeric": []any{comparison(t, ">", ">="), low, comparison(t, "<", "<="), high}}
	case "exists":
		return object{"exists": rapid.Bool().Draw(t, "exists")}
	case "cidr":
		return object{"cidr": blocks.Draw(t, "block")}
	}
	return nil
}

func affixOperand(t *rapid.T) any {
	if rapid.Bool().Draw(t, "fold") {
		return object{"equals-ignore-case": words.Draw(t, "word")}
	}
	return words.Draw(t, "word")
}

func exception(t *rapid.T) any {
	operator := rapid.SampledFrom([]string{"prefix", "suffix", "equals-ignore-case", "wildcard"}).Draw(t, "operator")
	operand := words.Draw(t, "word")
	if operator == "wildcard" {
		operand = stars(t)
	}
	if rapid.Bool().Draw(t, "one") {
		return object{operator: operand}
	}
	return object{operator: []string{operand, words.Draw(t, "word")}}
}

// stars is a wildcard whose stars do not touch.
func stars(t *rapid.T) string {
	star := rapid.SampledFrom([]string{"", "*"})
	return fmt.Sprintf("%s%s*%s%s", star.Draw(t, "left"), words.Draw(t, "one"), words.Draw(t, "two"), star.Draw(t, "right"))
}

func comparison(t *rapid.T, operators ...string) string {
	return rapid.SampledFrom(operators).Draw(t, "operator")
}
