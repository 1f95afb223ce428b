package peers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// normalize makes values comparable: numbers are float64, JSON in strings is parsed, and
// lists are sorted, because no list of the template depends on its order.
func normalize(value any) any {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "{") {
			var inner any
			if json.Unmarshal([]byte(v), &inner) == nil {
				return normalize(inner)
			}
		}
		return v
	case []any:
		out := make([]any, 0, len(v))
		for _, each := range v {
			out = append(out, normalize(each))
		}
		slices.SortFunc(out, func(a, b any) int { return cmp.Compare(oneLine(a), oneLine(b)) })
		return out
	case object:
		out := object{}
		for name, each := range v {
			out[name] = normalize(each)
		}
		return out
	default:
		return v
	}
}

func oneLine(value any) string {
	if value == nil {
		return "nothing"
	}
	out, _ := json.Marshal(value)
	return string(out)
}

// differ lists the places in which two normalized values differ: "[1].Sid: ...".
func differ(at string, want, got any) []string {
	var out []string
	switch w := want.(type) {
	case object:
		g, ok := got.(object)
		if !ok {
			break
		}
		names := maps.Clone(w)
		maps.Copy(names, g)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			out = append(out, differ(at+"."+name, w[name], g[name])...)
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			out = append(out, differ(fmt.Sprintf("%s[%d]", at, i), w[i], g[i])...)
		}
		return out
	}
	if oneLine(want) != oneLine(got) {
		out = append(out, fmt.Sprintf("%s: the template has %.200s, the peer has %.200s", at, oneLine(want), oneLine(got)))
	}
	return out
}

func TestFindDifferences(t *testing.T) {
	want := object{"Tags": []any{object{"Key": "b"}, object{"Key": "a"}}, "Policy": `{"Statement": [{"Sid": "One", "Action": ["x", "y"]}]}`, "Days": 30, "Gone": "x"}
	got := object{"Tags": []any{object{"Key": "a"}, object{"Key": "b"}}, "Policy": object{"Statement": []any{object{"Sid": "Two", "Action": []any{"y", "x"}}}}, "Days": 30.0}
	all := differ("", normalize(reparse(want)), normalize(reparse(got)))
	if !slices.Equal(all, []string{
		`.Gone: the template has "x", the peer has nothing`, `.Policy.Statement[0].Sid: the template has "One", the peer has "Two"`,
	}) {
		t.Errorf("%q", all)
	}
}
