package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Joist's and upstream's types have the same JSON fields, at any depth. Unlike the round
// trip, this lists every missing field at once after an upgrade.
func TestSameFields(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			for _, problem := range compareFields(k.name, reflect.TypeOf(k.ours()), reflect.TypeOf(k.theirs())) {
				t.Error(problem)
			}
		})
	}
}

func TestCompareFieldsSeesDifferences(t *testing.T) {
	type innerOurs struct {
		Same string `json:"same"`
		Mine *int   `json:"mine,omitempty"`
	}
	type innerTheirs struct {
		Same  string `json:"same,omitempty" protobuf:"x"`
		Yours *int   `json:"yours,omitempty" hash:"ignore"`
	}
	type ours struct {
		innerOurs
		List []innerOurs `json:"list"`
		Type string      `json:"type"`
	}
	type theirs struct {
		innerTheirs
		List []*innerTheirs `json:"list"`
		Type int            `json:"type"`
	}
	got := compareFields("X", reflect.TypeFor[ours](), reflect.TypeFor[*theirs]())
	want := []string{
		"X.list.mine: only in Joist",
		"X.list.same: Joist's tag is json:\"same\", upstream's json:\"same,omitempty\"",
		"X.list.yours: only in upstream",
		"X.mine: only in Joist",
		"X.same: Joist's tag is json:\"same\", upstream's json:\"same,omitempty\"",
		"X.type: Joist's type is string, upstream's int",
		"X.yours: only in upstream",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func compareFields(path string, ours, theirs reflect.Type) []string {
	ours, theirs = bare(ours), bare(theirs)
	switch {
	case ours == theirs:
		return nil
	case ours.Kind() != theirs.Kind():
		return []string{fmt.Sprintf("%s: Joist's type is %v, upstream's %v", path, ours, theirs)}
	case ours.Kind() == reflect.Map:
		return append(compareFields(path+"<key>", ours.Key(), theirs.Key()), compareFields(path, ours.Elem(), theirs.Elem())...)
	case ours.Kind() == reflect.Struct && !writesItself(ours) && !writesItself(theirs):
		return compareStructs(path, ours, theirs)
	}
	return nil
}

func compareStructs(path string, ours, theirs reflect.Type) []string {
	a, b := fields(ours), fields(theirs)
	var problems []string
	for name, field := range a {
		other, both := b[name]
		if !both {
			problems = append(problems, path+"."+name+": only in Joist")
			continue
		}
		if a, b := tags(field), tags(other); a != b {
			problems = append(problems, fmt.Sprintf("%s.%s: Joist's tag is %s, upstream's %s", path, name, a, b))
		}
		problems = append(problems, compareFields(path+"."+name, field.Type, other.Type)...)
	}
	for name := range b {
		if _, both := a[name]; !both {
			problems = append(problems, path+"."+name+": only in upstream")
		}
	}
	slices.Sort(problems)
	return problems
}

// tags returns the struct tags that code reads: the encoding of a field, and whether it
// is hashed. Upstream's copies of other projects' types have more.
func tags(field reflect.StructField) string {
	var out []string
	for _, key := range []string{"json", "hash"} {
		if value, ok := field.Tag.Lookup(key); ok {
			out = append(out, fmt.Sprintf("%s:%q", key, value))
		}
	}
	return strings.Join(out, " ")
}

// fields returns fields by JSON name; those of embedded structs without a name belong to
// the outer struct.
func fields(t reflect.Type) map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			maps.Copy(out, fields(bare(field.Type)))
		case name != "-" && field.IsExported():
			out[name] = field
		}
	}
	return out
}

// bare removes pointers and lists, because upstream sometimes has pointers where Joist
// has values.
func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func writesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}
