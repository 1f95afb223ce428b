package manifest

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet"
)

// readValue reads a node as a Go type and returns its JSON value. present is false for null
// and for values with a reported problem.
func (r *reader) readValue(n ast.Node, t reflect.Type, path string, depth int) (out any, present bool) {
	n, textual, ok := r.resolveNode(n, path)
	if !ok || !r.countValue(n, path, depth) {
		return nil, false
	}
	if s, isScalar := scalarOf(n); isScalar && s.value == nil && !textual {
		return nil, false
	}
	t = dereference(t)
	if t == reflect.TypeFor[karpenter.KubeletConfiguration]() {
		t = kubelet.ConfigurationType()
	}
	switch {
	case t.Kind() == reflect.Interface:
		return r.readUntyped(n, path, depth), true
	case hasUnmarshaler(t):
		return r.readCustom(n, t, path, depth)
	case t.Kind() == reflect.Struct:
		return r.readStruct(n, t, path, depth)
	case t.Kind() == reflect.Map:
		return r.readMapping(n, t.Elem(), path, depth)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return r.readList(n, t.Elem(), path, depth)
	default:
		return r.readScalar(n, t, path, textual)
	}
}

func (r *reader) countValue(n ast.Node, path string, depth int) bool {
	r.values++
	switch {
	case depth > depthMax:
		r.report(r.placeOf(firstToken(n)), path, "nested deeper than %d levels", depthMax)
	case r.values == valuesMax:
		r.report(r.placeOf(firstToken(n)), path, "the document's aliases expand to more than %d values", valuesMax)
	case r.values < valuesMax:
		return true
	}
	return false
}

func (r *reader) readStruct(n ast.Node, t reflect.Type, path string, depth int) (any, bool) {
	entries, ok := r.listEntries(n, path, depth)
	if !ok {
		return nil, r.reportType(n, path, depth, "a mapping", "")
	}
	s := structFieldsOf(t)
	out := map[string]any{}
	for i, e := range entries {
		child := joinPath(path, e.key)
		r.places[child] = e.at
		ft, known := s.byName[e.key]
		if !known {
			r.report(e.at, child, "unknown field%s", r.suggestField(e.key, path, t, entries[:i]))
			continue
		}
		if t == kubelet.ConfigurationType() && e.key == "maxPods" {
			ft = reflect.TypeFor[countOrExpression]()
		}
		if value, present := r.readValue(e.value, ft, child, depth+1); present {
			out[e.key] = value
		}
	}
	return out, true
}

func (r *reader) readMapping(n ast.Node, elem reflect.Type, path string, depth int) (any, bool) {
	entries, ok := r.listEntries(n, path, depth)
	if !ok {
		return nil, r.reportType(n, path, depth, "a mapping", "")
	}
	out := map[string]any{}
	for _, e := range entries {
		child := joinPath(path, e.key)
		r.places[child] = e.at
		value, present := r.readValue(e.value, elem, child, depth+1)
		switch {
		case present:
			out[e.key] = value
		case r.native && elem.Kind() == reflect.String:
			out[e.key] = "" // as the API server stores a label without a value
		}
	}
	return out, true
}

func (r *reader) readList(n ast.Node, elem reflect.Type, path string, depth int) (any, bool) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, r.reportType(n, path, depth, "a list", ": begin each item with a dash")
	}
	out := []any{}
	for i, item := range sequence.Values {
		child := path + "[" + strconv.Itoa(i) + "]"
		if item == nil {
			continue
		}
		r.places[child] = r.placeOf(firstToken(item))
		value, present := r.readValue(item, elem, child, depth+1)
		if present {
			out = append(out, value)
		} else if s, isScalar := scalarOf(item); isScalar && s.value == nil {
			r.report(r.places[child], child, "the item is empty: fill it in or remove its dash")
		}
	}
	return out, true
}

// readCustom reads a type that implements json.Unmarshaler, such as a quantity.
func (r *reader) readCustom(n ast.Node, t reflect.Type, path string, depth int) (any, bool) {
	value := r.readUntyped(n, path, depth)
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, reflect.New(t).Interface())
	}
	if err == nil {
		return value, true
	}
	want, known := customTypes[t]
	if !known {
		want = err.Error()
	}
	return nil, r.reportType(n, path, depth, want, "")
}

// readScalar reads a string, a boolean or a number.
func (r *reader) readScalar(n ast.Node, t reflect.Type, path string, textual bool) (any, bool) {
	s, ok := scalarOf(n)
	if !ok {
		return nil, r.reportType(n, path, 0, describeType(t), shapeHint(r.kind, path))
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
		if fitsType(value, t) {
			return value, true
		}
	}
	return nil, r.reportType(n, path, 0, describeType(t), quotingHint(s, t))
}

// quotingHint returns how to write a scalar of the type.
func quotingHint(s scalar, t reflect.Type) string {
	text, isText := s.value.(string)
	switch {
	case t.Kind() == reflect.String && !isText:
		return ": write " + quoteText(s.written) + " in quotes"
	case !isText:
		return ""
	case t.Kind() == reflect.Bool && (parsePlain(text) == true || strings.EqualFold(text, "true")):
		return ": write true without quotes"
	case t.Kind() == reflect.Bool && (parsePlain(text) == false || strings.EqualFold(text, "false")):
		return ": write false without quotes"
	case t.Kind() != reflect.Bool && number.MatchString(text):
		return ": write " + text + " without quotes"
	}
	return ""
}

func fitsType(n json.Number, t reflect.Type) bool {
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

// readUntyped returns the JSON value of a node of any type.
func (r *reader) readUntyped(n ast.Node, path string, depth int) any {
	n, textual, ok := r.resolveNode(n, path)
	if !ok || !r.countValue(n, path, depth) {
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
			out = append(out, r.readUntyped(item, path, depth+1))
		}
		return out
	}
	out := map[string]any{}
	entries, _ := r.listEntries(n, path, depth)
	for _, e := range entries {
		child := joinPath(path, e.key)
		r.places[child] = e.at
		out[e.key] = r.readUntyped(e.value, child, depth+1)
	}
	return out
}
