package upstream

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// unordered are the lists in a manifest whose order has no meaning.
var unordered = map[string]bool{
	"required": true, "enum": true, "x-kubernetes-validations": true, "x-kubernetes-list-map-keys": true,
	"categories": true, "shortNames": true,
}

// compareManifests returns every difference with its path, in order. It ignores
// descriptions, but not a field with the name description.
func compareManifests(path string, ours, theirs any) []string {
	a, aIsMap := ours.(map[string]any)
	b, bIsMap := theirs.(map[string]any)
	if aIsMap && bIsMap {
		return compareMaps(path, a, b)
	}
	if reflect.DeepEqual(ours, theirs) {
		return nil
	}
	c, aIsList := ours.([]any)
	d, bIsList := theirs.([]any)
	if aIsList && bIsList && len(c) == len(d) {
		var problems []string
		for i := range c {
			problems = append(problems, compareManifests(fmt.Sprintf("%s[%d]", path, i), c[i], d[i])...)
		}
		return problems
	}
	return []string{fmt.Sprintf("%s: Joist %v, upstream %v", path, ours, theirs)}
}

func compareMaps(path string, ours, theirs map[string]any) []string {
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if _, isText := all[key].(string); key == "description" && isText {
			continue
		}
		at := path + "." + key
		a, mine := ours[key]
		b, yours := theirs[key]
		switch {
		case !yours:
			problems = append(problems, fmt.Sprintf("%s: only in Joist: %v", at, a))
		case !mine:
			problems = append(problems, fmt.Sprintf("%s: only in upstream: %v", at, b))
		case unordered[key] && isList(a) && isList(b):
			problems = append(problems, compareSets(at, a.([]any), b.([]any))...)
		default:
			problems = append(problems, compareManifests(at, a, b)...)
		}
	}
	return problems
}

func compareSets(path string, ours, theirs []any) []string {
	var problems []string
	for _, value := range missing(ours, theirs) {
		problems = append(problems, fmt.Sprintf("%s: only in Joist: %v", path, value))
	}
	for _, value := range missing(theirs, ours) {
		problems = append(problems, fmt.Sprintf("%s: only in upstream: %v", path, value))
	}
	return problems
}

// missing returns the items of one list that are not in the other.
func missing(from, in []any) []any {
	return slices.DeleteFunc(slices.Clone(from), func(value any) bool {
		return slices.ContainsFunc(in, func(other any) bool { return reflect.DeepEqual(value, other) })
	})
}

func isList(value any) bool {
	_, ok := value.([]any)
	return ok
}

func countRules(value any) int {
	count := 0
	switch v := value.(type) {
	case map[string]any:
		if rules, ok := v["x-kubernetes-validations"].([]any); ok {
			count += len(rules)
		}
		for _, child := range v {
			count += countRules(child)
		}
	case []any:
		for _, child := range v {
			count += countRules(child)
		}
	}
	return count
}
