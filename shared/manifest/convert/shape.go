package convert

import (
	"reflect"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// shape says which fields a value may have, to give lost indentation back.
type shape struct {
	fields map[string]*shape
	// items is the shape of a list's items, and values that of a mapping with any keys.
	items, values *shape
	// fill adds the fields when they are needed first.
	fill func(*shape)
}

func (s *shape) isScalar() bool {
	s.load()
	return s.fields == nil && s.items == nil && s.values == nil
}

func (s *shape) load() {
	if s.fill != nil {
		fill := s.fill
		s.fill = nil
		fill(s)
	}
}

func (s *shape) field(name string) *shape {
	s.load()
	return s.fields[name]
}

// shapeOf returns the shape of a kind with the fields of all its versions, or nil.
func shapeOf(apiVersion, kind string) *shape {
	now, old := manifest.CurrentKind(apiVersion, kind)
	if old {
		apiVersion, kind = now.APIVersion(), now.Kind
	}
	t := manifest.TypeOf(apiVersion, kind)
	if t == nil {
		return nil
	}
	root := typeShape(t)
	for _, list := range map[string][]string{
		cluster.NodePools.Kind: slices.Concat(provisionerFields, nodePoolFields), cluster.NodeClasses.Kind: slices.Concat(templateFields, nodeClassFields), cluster.NodeClaims.Kind: nodeClaimFields,
	}[kind] {
		root.addPath(list)
	}
	return root
}

func typeShape(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &shape{}
	fields, isStruct := manifest.FieldsOf(t)
	switch {
	case isStruct:
		s.fill = func(s *shape) {
			s.fields = map[string]*shape{}
			for name, field := range fields {
				s.fields[name] = typeShape(field)
			}
		}
	case manifest.IsCustom(t):
	case t.Kind() == reflect.Map:
		s.values = typeShape(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		s.items = typeShape(t.Elem())
	}
	return s
}

// addPath adds a field such as spec.requirements[].key or spec.labels{}.
func (s *shape) addPath(path string) {
	s.load()
	name, rest, _ := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(name, "[]")
	name, isMap := strings.CutSuffix(name, "{}")
	if s.fields == nil {
		s.fields = map[string]*shape{}
	}
	inner := s.fields[name]
	if inner == nil {
		inner = &shape{}
		s.fields[name] = inner
	}
	inner.load()
	if isMap && inner.values == nil {
		inner.values = &shape{}
	}
	if isList {
		if inner.items == nil {
			inner.items = &shape{}
		}
		inner = inner.items
	}
	if rest != "" {
		inner.addPath(rest)
	}
}
