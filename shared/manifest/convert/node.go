package convert

import (
	"encoding/json"
	"slices"
	"strings"
)

// nodeKind is the kind of a YAML value.
type nodeKind int

const (
	scalarNode nodeKind = iota
	mappingNode
	listNode
)

// node is a value of a document. A node that was read refers to its lines, so that unchanged
// values are printed as they were written.
type node struct {
	kind nodeKind
	// value is a scalar's: nil, a bool, a json.Number or a string. written is its text in the file.
	value   any
	written string
	// entries are a mapping's or a list's; the entries of a list have no key.
	entries []*entry
	// flow is set for {…} and […].
	flow bool
	// line and column are the place of the value; 0 if it was not read.
	line, column int
	// changed is set if the value itself, or its list of entries, is not as written.
	changed bool
}

// entry is one key of a mapping, or one item of a list.
type entry struct {
	key, writtenKey string
	value           *node
	// head is the first line of the comments above it, first its own first line and last its last.
	// They are 0 if the entry was not read.
	head, first, last int
	// column is that of the key or the dash.
	column int
	// comments are printed above an entry that was not read.
	comments []string
	// copied is set if the value stands elsewhere in the document, behind an alias or a merge key.
	copied bool
}

func newScalar(value any) *node { return &node{value: value, changed: true} }

func newMapping(entries ...*entry) *node {
	return &node{kind: mappingNode, entries: entries, changed: true}
}

func newList(items ...*node) *node {
	n := &node{kind: listNode, changed: true}
	for _, item := range items {
		n.entries = append(n.entries, &entry{value: item})
	}
	return n
}

func newEntry(key string, value *node) *entry { return &entry{key: key, writtenKey: key, value: value} }

// newText returns a mapping entry with a scalar.
func newText(key string, value any) *entry { return newEntry(key, newScalar(value)) }

// entry returns a key's entry, or nil.
func (n *node) entry(key string) *entry {
	if n == nil || n.kind != mappingNode {
		return nil
	}
	for _, e := range n.entries {
		if e.key == key {
			return e
		}
	}
	return nil
}

// get returns the value at a path, or nil.
func (n *node) get(path ...string) *node {
	for _, key := range path {
		e := n.entry(key)
		if e == nil {
			return nil
		}
		n = e.value
	}
	return n
}

// isNull reports whether a value is absent or null.
func (n *node) isNull() bool { return n == nil || n.kind == scalarNode && n.value == nil }

// text returns a scalar's text, or "".
func (n *node) text() string {
	if n.isNull() || n.kind != scalarNode {
		return ""
	}
	if s, ok := n.value.(string); ok {
		return s
	}
	return n.written
}

// textAt returns the text of the scalar at a path, or "".
func (n *node) textAt(path ...string) string { return n.get(path...).text() }

// set replaces the value of a key, or adds it at the end.
func (n *node) set(key string, value *node) *entry {
	if e := n.entry(key); e != nil {
		e.value = value
		value.changed = true
		return e
	}
	return n.add(newEntry(key, value))
}

// add appends an entry.
func (n *node) add(e *entry) *entry {
	n.entries = append(n.entries, e)
	n.changed = true
	return e
}

// insert adds an entry before another key, or at the end.
func (n *node) insert(before string, e *entry) {
	at := slices.IndexFunc(n.entries, func(other *entry) bool { return other.key == before })
	if at < 0 {
		at = len(n.entries)
	}
	n.entries = slices.Insert(n.entries, at, e)
	n.changed = true
}

// take removes a key and returns its entry, or nil.
func (n *node) take(key string) *entry {
	e := n.entry(key)
	if e != nil {
		n.entries = slices.DeleteFunc(n.entries, func(other *entry) bool { return other == e })
		n.changed = true
	}
	return e
}

// mapping returns the mapping at a path, and adds the missing ones. It returns nil at a value of another kind.
func (n *node) mapping(path ...string) *node {
	for _, key := range path {
		inner := n.get(key)
		switch {
		case inner == nil:
			inner = newMapping()
			n.add(newEntry(key, inner))
		case inner.isNull():
			inner.kind, inner.changed = mappingNode, true
		case inner.kind != mappingNode:
			return nil
		}
		n = inner
	}
	return n
}

// isChanged reports whether anything in the value is not as written.
func (n *node) isChanged() bool {
	return n.changed || slices.ContainsFunc(n.entries, func(e *entry) bool {
		return e.key != e.writtenKey || e.first == 0 && !e.copied && !n.flow || e.value.isChanged()
	})
}

// clone returns a copy without places.
func (n *node) clone() *node {
	c := &node{kind: n.kind, value: n.value, written: n.written, changed: true}
	for _, e := range n.entries {
		c.entries = append(c.entries, &entry{key: e.key, writtenKey: e.key, value: e.value.clone()})
	}
	return c
}

// plain returns the JSON value of a node.
func (n *node) plain() any {
	switch n.kind {
	case mappingNode:
		out := map[string]any{}
		for _, e := range n.entries {
			out[e.key] = e.value.plain()
		}
		return out
	case listNode:
		out := []any{}
		for _, e := range n.entries {
			out = append(out, e.value.plain())
		}
		return out
	}
	return n.value
}

// fingerprint returns a text that is equal for equal values.
func (n *node) fingerprint() string {
	text, err := json.Marshal(n.plain())
	if err != nil {
		return ""
	}
	return string(text)
}

// textList returns a list of texts.
func textList(values ...string) *node {
	n := newList()
	for _, value := range values {
		n.entries = append(n.entries, &entry{value: newScalar(value)})
	}
	return n
}

// fromJSON returns the node of a JSON value, with sorted keys.
func fromJSON(value any) *node {
	switch v := value.(type) {
	case map[string]any:
		n := newMapping()
		for _, key := range sortedKeys(v) {
			n.add(newEntry(key, fromJSON(v[key])))
		}
		return n
	case []any:
		n := newList()
		for _, item := range v {
			n.entries = append(n.entries, &entry{value: fromJSON(item)})
		}
		return n
	}
	return newScalar(value)
}

// decodeJSON decodes one JSON value, with numbers as written.
func decodeJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}
