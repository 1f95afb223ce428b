package peers

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// The random language is small, so that patterns often match events: three fields, and
// words of two characters.
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
	return text(t, fields(t, names, 3, func() any { return eventValue(t, 2) }))
}

// fields draws an object with at least one and at most the given number of members.
func fields(t *rapid.T, names []string, most int, value func() any) object {
	out := object{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, min(most, len(names)), rapid.ID).Draw(t, "names") {
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
		return fields(t, names, 3, func() any { return eventValue(t, depth-1) })
	case "array":
		var list []any
		for range rapid.IntRange(1, 3).Draw(t, "elements") {
			list = append(list, eventValue(t, depth-1))
		}
		return list
	}
	return nil
}

// language determines the operators of a random pattern: wildcards, or case-insensitive
// matching. If one pattern has both, event-ruler returns wrong results; a corner case
// covers that.
type language struct{ wild bool }

func drawPattern(t *rapid.T) string {
	l := language{rapid.Bool().Draw(t, "wild")}
	return text(t, l.object(t, names, 2))
}

// object draws an object with fields of these names. No field is both inside and outside
// an $or, because Joist rejects such patterns, and no field is in two alternatives,
// because event-ruler may miss one; a corner case covers that.
func (l language) object(t *rapid.T, names []string, depth int) object {
	out := fields(t, names, 1+rapid.IntRange(0, 2).Draw(t, "more")/2, func() any { return l.value(t, depth) })
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return out[name] != nil })
	if depth > 0 && len(rest) > 1 && rapid.Bool().Draw(t, "or") {
		out["$or"] = []any{l.object(t, rest[:1], depth-1), l.object(t, rest[1:], depth-1)}
	}
	return out
}

func (l language) value(t *rapid.T, depth int) any {
	if depth > 0 && rapid.IntRange(0, 4).Draw(t, "nest") == 0 {
		return l.object(t, names, depth-1)
	}
	var list []any
	for range rapid.IntRange(1, 3).Draw(t, "alternatives") {
		list = append(list, l.matcher(t))
	}
	return list
}

// matcher draws one entry of a field's list.
func (l language) matcher(t *rapid.T) any {
	kinds := []string{
		"word", "number", "bool", "null", "prefix", "suffix", "fold", "but", "buts", "not", "compare", "range", "exists", "cidr",
	}
	switch rapid.SampledFrom(kinds).Draw(t, "matcher") {
	case "word":
		return words.Draw(t, "word")
	case "number":
		return numbers.Draw(t, "number")
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "prefix":
		return object{"prefix": l.affix(t)}
	case "suffix":
		return object{"suffix": l.affix(t)}
	case "fold":
		return l.fold(t)
	case "but":
		return object{"anything-but": words.Draw(t, "word")}
	case "buts":
		return object{"anything-but": rapid.SliceOfN(numbers, 1, 2).Draw(t, "numbers")}
	case "not":
		return object{"anything-but": l.exception(t)}
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

// fold draws a case-insensitive match in the one language, and a wildcard in the other.
func (l language) fold(t *rapid.T) object {
	if l.wild {
		return object{"wildcard": stars(t)}
	}
	return object{"equals-ignore-case": words.Draw(t, "word")}
}

func (l language) affix(t *rapid.T) any {
	if !l.wild && rapid.Bool().Draw(t, "fold") {
		return l.fold(t)
	}
	return words.Draw(t, "word")
}

// exception draws the operand of anything-but, alone or in a list.
func (l language) exception(t *rapid.T) object {
	out := l.fold(t)
	if other := rapid.SampledFrom([]string{"", "prefix", "suffix"}).Draw(t, "operator"); other != "" {
		out = object{other: words.Draw(t, "word")}
	}
	for operator, operand := range out {
		if rapid.Bool().Draw(t, "list") {
			out[operator] = []any{operand, words.Draw(t, "word")}
		}
	}
	return out
}

// stars draws a wildcard without adjacent stars.
func stars(t *rapid.T) string {
	star := rapid.SampledFrom([]string{"", "*"})
	return fmt.Sprintf("%s%s*%s%s", star.Draw(t, "left"), words.Draw(t, "one"), words.Draw(t, "two"), star.Draw(t, "right"))
}

func comparison(t *rapid.T, operators ...string) string {
	return rapid.SampledFrom(operators).Draw(t, "operator")
}
