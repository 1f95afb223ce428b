package convert

import (
	"reflect"
	"strconv"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// quoteTexts quotes numbers and booleans where the kind has texts, such as values of requirements, labels,
// annotations and tags.
func (c *converter) quoteTexts(o *object) {
	t := manifest.TypeOf(o.root.textAt("apiVersion"), o.root.textAt("kind"))
	if t == nil {
		return
	}
	c.quoteValue(o, &entry{value: o.root, first: o.root.line, column: o.root.column}, t, "")
}

func (c *converter) quoteValue(o *object, e *entry, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	n := e.value
	fields, isStruct := manifest.FieldsOf(t)
	switch {
	case manifest.IsCustom(t) && !isStruct:
	case isStruct && n.kind == mappingNode:
		c.quoteFields(o, n, fields, path)
	case t.Kind() == reflect.Map && n.kind == mappingNode:
		for _, inner := range n.entries {
			c.quoteValue(o, inner, t.Elem(), manifest.JoinPath(path, inner.key))
		}
	case t.Kind() == reflect.Slice && n.kind == listNode:
		for i, inner := range n.entries {
			c.quoteValue(o, inner, t.Elem(), path+"["+strconv.Itoa(i)+"]")
		}
	case t.Kind() == reflect.String && n.kind == scalarNode:
		c.quoteScalar(o, e, path)
	}
}

func (c *converter) quoteFields(o *object, n *node, fields map[string]reflect.Type, path string) {
	for _, inner := range n.entries {
		if field := fields[inner.key]; field != nil {
			c.quoteValue(o, inner, field, manifest.JoinPath(path, inner.key))
		}
	}
}

func (c *converter) quoteScalar(o *object, e *entry, path string) {
	n := e.value
	if _, text := n.value.(string); text || n.value == nil {
		return
	}
	line, column := n.line, n.column
	written := n.written
	if written == "" {
		written = jsonScalar(n.value)
	}
	e.value = &node{value: written, changed: true, line: line, column: column}
	c.remark(o, Converted, line, column, path, written+" is now in quotes: the field is text", "")
}
