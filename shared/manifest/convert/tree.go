package convert

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

const (
	// nodesMax is the maximum number of values of a document after expanding aliases.
	nodesMax = 200_000
	// levelsMax is the maximum depth.
	levelsMax = 100
)

// tree is one document: its values, and its text by line.
type tree struct {
	root  *node
	lines []string // without line breaks; lines[0] is line 1
	// alone has the lines with nothing but a comment, and their columns.
	alone    map[int]int
	comments []manifest.Comment
	anchors  map[string]ast.Node
	nodes    int
	problem  *manifest.Problem
	// copies is set if the document has aliases or merge keys.
	copies bool
	// last is the last line of the root; comments may follow.
	last int
	// offset is the indentation of list items below their key: 0 or 2.
	offset int
}

// parseTree parses a document. The tree has no root if the text is empty.
func parseTree(text string) (_ *tree, problem *manifest.Problem) {
	if before, _, ok := strings.Cut(text, "\r"); ok {
		line := 1 + strings.Count(before, "\n")
		return nil, &manifest.Problem{Place: manifest.Place{Line: line}, Text: "this line has a carriage return inside: end lines with line feeds"}
	}
	defer func() {
		if cause := recover(); cause != nil { // the places of the library may be outside of the text
			problem = &manifest.Problem{Place: manifest.Place{Line: 1}, Text: fmt.Sprintf("cannot be read as YAML (%v)", cause)}
		}
	}()
	body, problem := manifest.ParseText(text)
	if problem != nil {
		return nil, problem
	}
	t := &tree{lines: splitLines(text), alone: map[int]int{}, anchors: map[string]ast.Node{}, offset: -1}
	if body == nil {
		return t, nil
	}
	t.comments = manifest.Comments(text)
	for _, c := range t.comments {
		if c.Alone {
			t.alone[c.Line] = c.Column
		}
	}
	t.root = t.build(body, len(t.lines), 0)
	t.cutTail()
	if t.offset < 0 {
		t.offset = 2
	}
	return t, t.problem
}

func (t *tree) report(n ast.Node, format string, args ...any) {
	if t.problem == nil {
		line, column := position(n)
		t.problem = &manifest.Problem{Place: manifest.Place{Line: line, Column: column}, Text: fmt.Sprintf(format, args...)}
	}
}

// build returns the node of a syntax tree that ends before the line after end.
func (t *tree) build(n ast.Node, end, depth int) *node {
	n, ok := t.resolve(n)
	t.nodes++
	switch {
	case !ok:
		return newScalar(nil)
	case depth > levelsMax:
		t.report(n, "nested deeper than %d levels", levelsMax)
		return newScalar(nil)
	case t.nodes > nodesMax:
		t.report(n, "more than %d values after expanding aliases", nodesMax)
		return newScalar(nil)
	}
	line, column := position(n)
	if value, written, ok := manifest.Scalar(n); ok {
		return &node{value: value, written: written, line: line, column: column}
	}
	out := &node{line: line, column: column}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.kind, out.flow = mappingNode, v.IsFlowStyle
		t.addPairs(out, v.Values, end, depth)
	case *ast.MappingValueNode:
		out.kind = mappingNode
		t.addPairs(out, []*ast.MappingValueNode{v}, end, depth)
	case *ast.SequenceNode:
		out.kind, out.flow = listNode, v.IsFlowStyle
		t.addItems(out, v, end, depth)
	}
	return out
}

// resolve resolves anchors, aliases and tags.
func (t *tree) resolve(n ast.Node) (ast.Node, bool) {
	for range levelsMax {
		switch v := n.(type) {
		case *ast.AnchorNode:
			t.anchors[tokenText(v.Name)] = v.Value
			n = v.Value
		case *ast.AliasNode:
			behind, known := t.anchors[tokenText(v.Value)]
			if !known {
				t.report(v, "the alias *%s has no anchor: there is no &%s above it", tokenText(v.Value), tokenText(v.Value))
				return nil, false
			}
			t.copies, n = true, behind
		case *ast.TagNode:
			if v.Start.Value == "!!str" {
				return textual(v), v.Value != nil
			}
			n = v.Value
		case nil:
			return nil, false
		default:
			return n, true
		}
	}
	return nil, false
}

// textual returns the text behind the tag !!str.
func textual(v *ast.TagNode) ast.Node {
	_, written, ok := manifest.Scalar(v.Value)
	if !ok {
		return v.Value
	}
	quoted := *v.Value.GetToken()
	quoted.Type, quoted.Value = token.DoubleQuoteType, written
	return ast.String(&quoted)
}

func (t *tree) addPairs(out *node, pairs []*ast.MappingValueNode, end, depth int) {
	seen := map[string]bool{}
	var merged []ast.Node
	for i, pair := range pairs {
		if pair.Key.IsMergeKey() {
			merged = append(merged, pair.Value)
			continue
		}
		key := tokenText(pair.Key)
		if seen[key] {
			t.report(pair.Key, "duplicate key %s: remove one of them", key)
			continue
		}
		seen[key] = true
		e := newEntry(key, nil)
		last := end
		if i+1 < len(pairs) {
			last = lineOf(pairs[i+1].Key) - 1
		}
		t.place(out, e, pair.Key, last)
		e.value = t.build(pair.Value, e.last, depth+1)
		e.copied = isCopied(pair.Value)
		t.addHead(e)
		out.entries = append(out.entries, e)
	}
	t.trim(out)
	for _, source := range merged {
		t.copies = true
		t.merge(out, seen, source, depth)
	}
}

// place sets the lines of a block entry that ends at last, before the next one's comments are taken off.
func (t *tree) place(parent *node, e *entry, n ast.Node, last int) {
	if parent.flow {
		return
	}
	e.first, e.column = position(n)
	e.head, e.last = e.first, last
}

// trim gives the comments and blank lines between two entries to the second one, except comments that are
// indented further than it.
func (t *tree) trim(parent *node) {
	if parent.flow {
		return
	}
	for i := 1; i < len(parent.entries); i++ {
		above, e := parent.entries[i-1], parent.entries[i]
		if e.first == 0 || above.first == 0 {
			continue
		}
		e.head = e.first
		for line := e.first - 1; line > above.first && t.isFiller(line, e.column); line-- {
			e.head = line
		}
		above.clip(e.head - 1)
	}
}

// addHead gives the lines between a key and the first entry of its value to that entry.
func (t *tree) addHead(e *entry) {
	inner := e.value
	if e.first == 0 || e.copied || inner.flow || len(inner.entries) == 0 || inner.entries[0].first <= e.first {
		return
	}
	inner.entries[0].head = e.first + 1
	if offset := inner.entries[0].column - e.column; inner.kind == listNode && t.offset < 0 && offset <= 4 {
		t.offset = offset
	}
}

// cutTail takes the comments and blank lines at the end off the last entry of the document.
func (t *tree) cutTail() {
	if t.root.flow || len(t.root.entries) == 0 {
		return
	}
	e := t.root.entries[len(t.root.entries)-1]
	for e.first > 0 && e.last > e.first && t.isFiller(e.last, e.column) {
		e.last--
	}
	e.clip(e.last)
	t.last = e.last
}

// clip ends an entry and its values at a line.
func (e *entry) clip(last int) {
	e.last = min(e.last, last)
	if e.copied {
		return
	}
	for _, inner := range e.value.entries {
		if inner.first > 0 {
			inner.clip(last)
		}
	}
}

// isFiller reports whether a line is blank, or a comment at the column or left of it.
func (t *tree) isFiller(line, column int) bool {
	at, comment := t.alone[line]
	return comment && at <= column || isBlank(t.lines[line-1])
}

func (t *tree) addItems(out *node, v *ast.SequenceNode, end, depth int) {
	for i, item := range v.Values {
		e := newEntry("", nil)
		last := end
		if !v.IsFlowStyle {
			if i+1 < len(v.Values) {
				last = t.dashLine(v, i+1) - 1
			}
			e.first, e.column, e.last = t.dashLine(v, i), v.Start.Position.Column, last
			e.head = e.first
		}
		e.value = t.build(item, last, depth+1)
		e.copied = isCopied(item)
		out.entries = append(out.entries, e)
	}
	t.trim(out)
}

// dashLine returns the line of an item's dash, which is that of its first token, or above it.
func (t *tree) dashLine(v *ast.SequenceNode, i int) int {
	column := v.Start.Position.Column
	if i == 0 {
		return v.Start.Position.Line
	}
	line := v.Start.Position.Line
	if item := v.Values[i]; item != nil {
		line = lineOf(item)
	}
	for at := line; at > v.Start.Position.Line; at-- {
		if text := t.lines[at-1]; len(text) >= column && text[column-1] == '-' && isBlank(text[:column-1]) {
			return at
		}
	}
	return line
}

// merge adds the entries that `<<: *anchor` adds to the existing keys.
func (t *tree) merge(out *node, seen map[string]bool, source ast.Node, depth int) {
	from := t.build(source, 0, depth+1)
	if from.kind == listNode {
		for _, e := range from.entries {
			t.mergeEntries(out, seen, e.value)
		}
		return
	}
	t.mergeEntries(out, seen, from)
}

func (t *tree) mergeEntries(out *node, seen map[string]bool, from *node) {
	for _, e := range from.entries {
		if !seen[e.key] {
			seen[e.key] = true
			out.entries = append(out.entries, &entry{key: e.key, writtenKey: e.key, value: e.value.clone(), copied: true})
		}
	}
}

func isCopied(n ast.Node) bool {
	_, alias := n.(*ast.AliasNode)
	return alias
}

func tokenText(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// position returns the place of a node's first token; for a mapping that is its first key.
func position(n ast.Node) (line, column int) {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return position(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(v.Key)
	case *ast.AnchorNode:
		if v.Start != nil {
			return v.Start.Position.Line, v.Start.Position.Column
		}
	case *ast.TagNode:
		if v.Start != nil {
			return v.Start.Position.Line, v.Start.Position.Column
		}
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1, 1
	}
	return n.GetToken().Position.Line, n.GetToken().Position.Column
}

func lineOf(n ast.Node) int {
	line, _ := position(n)
	return line
}
