package manifest

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// field is one JSON field of a Go struct.
type field struct {
	name string
	kind reflect.Type
}

// structFields are the JSON fields of a Go struct.
type structFields struct {
	names  []string // in the order of the struct
	byName map[string]reflect.Type
}

var structFieldsCache sync.Map // reflect.Type to shape: the structs of the API are few and fixed

// structFieldsOf returns the JSON fields of a struct, including embedded structs.
func structFieldsOf(t reflect.Type) structFields {
	if got, ok := structFieldsCache.Load(t); ok {
		return got.(structFields)
	}
	s := structFields{byName: map[string]reflect.Type{}}
	for _, f := range jsonFields(t) {
		if _, twice := s.byName[f.name]; !twice {
			s.names = append(s.names, f.name)
			s.byName[f.name] = f.kind
		}
	}
	structFieldsCache.Store(t, s)
	return s
}

func jsonFields(t reflect.Type) []field {
	var out []field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			out = append(out, jsonFields(dereference(f.Type))...)
		case name == "":
			out = append(out, field{f.Name, f.Type})
		default:
			out = append(out, field{name, f.Type})
		}
	}
	return out
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// hasUnmarshaler reports whether a type implements json.Unmarshaler.
func hasUnmarshaler(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

func dereference(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// nestedStruct returns the struct type of a value or of its list items, and the path suffix
// of the items; ok is false if none exists.
func nestedStruct(t reflect.Type) (reflect.Type, string, bool) {
	t = dereference(t)
	switch {
	case hasUnmarshaler(t):
		return nil, "", false
	case t.Kind() == reflect.Struct:
		return t, "", true
	case t.Kind() == reflect.Slice:
		in, suffix, ok := nestedStruct(t.Elem())
		return in, "[]" + suffix, ok
	}
	return nil, "", false
}

// findField returns the shortest path of a field with the name, or "".
func findField(root reflect.Type, name string) string {
	type level struct {
		t    reflect.Type
		path string
	}
	seen := map[reflect.Type]bool{root: true}
	for queue := []level{{root, ""}}; len(queue) > 0; queue = queue[1:] {
		in := queue[0]
		for _, child := range structFieldsOf(in.t).names {
			path := joinPath(in.path, child)
			if in.path == "" && (child == "status" || child == "metadata") {
				continue // These are not fields that users confuse.
			}
			if child == name {
				return path
			}
			if t, suffix, ok := nestedStruct(structFieldsOf(in.t).byName[child]); ok && !seen[t] {
				seen[t] = true
				queue = append(queue, level{t, path + suffix})
			}
		}
	}
	return ""
}

// joinPath appends a field to a path, in brackets if the name has special characters.
func joinPath(path, name string) string {
	if strings.ContainsAny(name, "./:[]\" ") || name == "" {
		return path + "[" + quoteText(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func quoteText(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return string(out)
}
