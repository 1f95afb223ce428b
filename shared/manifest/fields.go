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

// shape is what a Go struct looks like in JSON.
type shape struct {
	names  []string // in the order of the struct
	byName map[string]reflect.Type
}

var shapes sync.Map // reflect.Type to shape: the structs of the API are few and fixed

// shapeOf reads the JSON tags of a struct, embedded ones included.
func shapeOf(t reflect.Type) shape {
	if got, ok := shapes.Load(t); ok {
		return got.(shape)
	}
	s := shape{byName: map[string]reflect.Type{}}
	for _, f := range jsonFields(t) {
		if _, twice := s.byName[f.name]; !twice {
			s.names = append(s.names, f.name)
			s.byName[f.name] = f.kind
		}
	}
	shapes.Store(t, s)
	return s
}

func jsonFields(t reflect.Type) []field {
	var out []field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			out = append(out, jsonFields(deref(f.Type))...)
		case name == "":
			out = append(out, field{f.Name, f.Type})
		default:
			out = append(out, field{name, f.Type})
		}
	}
	return out
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// custom says whether a type reads its own JSON.
func custom(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// nested is the struct that fields of a value of this type live in, if any: that
// of the type, of its items or of its values.
func nested(t reflect.Type) (reflect.Type, string, bool) {
	t = deref(t)
	switch {
	case custom(t):
		return nil, "", false
	case t.Kind() == reflect.Struct:
		return t, "", true
	case t.Kind() == reflect.Slice:
		in, suffix, ok := nested(t.Elem())
		return in, "[]" + suffix, ok
	}
	return nil, "", false
}

// elsewhere finds where a kind has a field of that name: the shallowest place.
func elsewhere(root reflect.Type, name string) string {
	type room struct {
		t    reflect.Type
		path string
	}
	seen := map[reflect.Type]bool{root: true}
	for queue := []room{{root, ""}}; len(queue) > 0; queue = queue[1:] {
		in := queue[0]
		for _, child := range shapeOf(in.t).names {
			path := join(in.path, child)
			if in.path == "" && (child == "status" || child == "metadata") {
				continue // Nobody writes a status, and metadata's fields are not what was meant.
			}
			if child == name {
				return path
			}
			if t, suffix, ok := nested(shapeOf(in.t).byName[child]); ok && !seen[t] {
				seen[t] = true
				queue = append(queue, room{t, path + suffix})
			}
		}
	}
	return ""
}

// join adds a field to a path; a name that is no word stands in brackets.
func join(path, name string) string {
	if strings.ContainsAny(name, "./:[]\" ") || name == "" {
		return path + "[" + quoted(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return string(out)
}
