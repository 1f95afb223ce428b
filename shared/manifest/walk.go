package manifest

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// value reads a node as a Go type and gives it as JSON would have it. present is
// false for a null, and for what was reported as a problem.
func (r *reader) value(n ast.Node, t reflect.Type, path string, depth int) (out any, present bool) {
	n, textual, ok := r.follow(n, path)
	if !ok || !r.affordable(n, path, depth) {
		return nil, false
	}
	if s, isScalar := scalarOf(n); isScalar && s.value == nil && !textual {
		return nil, false
	}
	t = deref(t)
	switch {
	case t.Kind() == reflect.Interface:
		return r.anything(n, path, depth), true
	case custom(t):
		return r.own(n, t, path, depth)
	case t.Kind() == reflect.Struct:
		return r.structure(n, t, path, depth)
	case t.Kind() == reflect.Map:
		return r.mapping(n, t.Elem(), path, depth)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return r.list(n, t.Elem(), path, depth)
	default:
		return r.word(n, t, path, textual)
	}
}

func (r *reader) affordable(n ast.Node, path string, depth int) bool {
	r.values++
	switch {
	case depth > depthMax:
		r.report(r.place(start(n)), path, "nested deeper than %d levels", depthMax)
	case r.values == valuesMax:
		r.report(r.place(start(n)), path, "the document's aliases expand to more than %d values", valuesMax)
	case r.values < valuesMax:
		return true
	}
	return false
}

func (r *reader) structure(n ast.Node, t reflect.Type, path string, depth int) (any, bool) {
	entries, ok := r.entries(n, path, depth)
	if !ok {
		return nil, r.wrong(n, path, depth, "a mapping is expected", "")
	}
	s := shapeOf(t)
	out := map[string]any{}
	for i, e := range entries {
		child := join(path, e.key)
		r.places[child] = e.at
		ft, known := s.byName[e.key]
		if !known {
			r.report(e.at, child, "unknown field%s", r.meant(e.key, path, t, entries[:i]))
			continue
		}
		if value, present := r.value(e.value, ft, child, depth+1); present {
			out[e.key] = value
		}
	}
	return out, true
}

func (r *reader) mapping(n ast.Node, elem reflect.Type, path string, depth int) (any, bool) {
	entries, ok := r.entries(n, path, depth)
	if !ok {
		return nil, r.wrong(n, path, depth, "a mapping is expected", "")
	}
	out := map[string]any{}
	for _, e := range entries {
		child := join(path, e.key)
		r.places[child] = e.at
		value, present := r.value(e.value, elem, child, depth+1)
		switch {
		case present:
			out[e.key] = value
		case r.native && elem.Kind() == reflect.String:
			out[e.key] = "" // as the API server stores a label without a value
		}
	}
	return out, true
}

func (r *reader) list(n ast.Node, elem reflect.Type, path string, depth int) (any, bool) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, r.wrong(n, path, depth, "a list is expected", ": begin each item with a dash")
	}
	out := []any{}
	for i, item := range sequence.Values {
		child := path + "[" + strconv.Itoa(i) + "]"
		if item == nil {
			continue
		}
		r.places[child] = r.place(start(item))
		value, present := r.value(item, elem, child, depth+1)
		if present {
			out = append(out, value)
		} else if s, isScalar := scalarOf(item); isScalar && s.value == nil {
			r.report(r.places[child], child, "the item is empty: fill it in or take its dash away")
		}
	}
	return out, true
}

// own reads a type that knows its own JSON, such as a quantity.
func (r *reader) own(n ast.Node, t reflect.Type, path string, depth int) (any, bool) {
	value := r.anything(n, path, depth)
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, reflect.New(t).Interface())
	}
	if err == nil {
		return value, true
	}
	want, known := nouns[t]
	if !known {
		want = err.Error()
	}
	return nil, r.wrong(n, path, depth, want+" is expected", "")
}

// word reads text, a boolean or a number.
func (r *reader) word(n ast.Node, t reflect.Type, path string, textual bool) (any, bool) {
	s, ok := scalarOf(n)
	if !ok {
		return nil, r.wrong(n, path, 0, want(t)+" is expected", special(r.kind, path))
	}
	if textual {
		s.value = s.written
	}
	switch value := s.value.(type) {
	case string:
		if t.Kind() == reflect.String || t.Kind() == reflect.Slice {
			return value, true
		}
	case bool:
		if t.Kind() == reflect.Bool {
			return value, true
		}
	case json.Number:
		if fits(value, t) {
			return value, true
		}
	}
	return nil, r.wrong(n, path, 0, want(t)+" is expected", quotes(s, t))
}

// quotes tells how to write a scalar so that it is of the type.
func quotes(s scalar, t reflect.Type) string {
	text, isText := s.value.(string)
	switch {
	case t.Kind() == reflect.String && !isText:
		return ": write " + quoted(s.written) + " in quotes"
	case !isText:
		return ""
	case t.Kind() == reflect.Bool && (plain(text) == true || strings.EqualFold(text, "true")):
		return ": write true without quotes"
	case t.Kind() == reflect.Bool && (plain(text) == false || strings.EqualFold(text, "false")):
		return ": write false without quotes"
	case t.Kind() != reflect.Bool && number.MatchString(text):
		return ": write " + text + " without quotes"
	}
	return ""
}

func fits(n json.Number, t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err := strconv.ParseInt(n.String(), 10, t.Bits())
		return err == nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err := strconv.ParseUint(n.String(), 10, t.Bits())
		return err == nil
	case reflect.Float32, reflect.Float64:
		return true
	}
	return false
}

// anything reads a node without a type.
func (r *reader) anything(n ast.Node, path string, depth int) any {
	n, textual, ok := r.follow(n, path)
	if !ok || !r.affordable(n, path, depth) {
		return nil
	}
	if s, isScalar := scalarOf(n); isScalar {
		if textual {
			return s.written
		}
		return s.value
	}
	if list, isList := n.(*ast.SequenceNode); isList {
		out := []any{}
		for _, item := range list.Values {
			out = append(out, r.anything(item, path, depth+1))
		}
		return out
	}
	out := map[string]any{}
	entries, _ := r.entries(n, path, depth)
	for _, e := range entries {
		out[e.key] = r.anything(e.value, join(path, e.key), depth+1)
	}
	return out
}
