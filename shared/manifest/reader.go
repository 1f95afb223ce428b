package manifest

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const (
	// valuesMax bounds what aliases may expand a document to.
	valuesMax = 1_000_000
	// heldMax bounds the problems that are kept of a document.
	heldMax = 1_000
)

// reader walks one document's tree beside the Go type that it should fill.
type reader struct {
	file   string
	before int // lines above the document
	// kind and root are what the document says it is.
	kind string
	root reflect.Type
	// native kinds read a null among texts as the empty text; custom resources prune it.
	native   bool
	anchors  map[string]ast.Node
	places   map[string]Place
	problems []Problem
	values   int
}

func (r *reader) place(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{File: r.file, Line: r.before + 1}
	}
	return Place{r.file, r.before + t.Position.Line, t.Position.Column}
}

func (r *reader) report(at Place, path, format string, args ...any) {
	if len(r.problems) < heldMax {
		r.problems = append(r.problems, Problem{at, path, fmt.Sprintf(format, args...)})
	}
}

// follow looks behind anchors, aliases and tags. textual is set by !!str.
func (r *reader) follow(n ast.Node, path string) (out ast.Node, textual, ok bool) {
	for range depthMax {
		switch v := n.(type) {
		case *ast.AnchorNode:
			r.anchors[text(v.Name)] = v.Value
			n = v.Value
		case *ast.AliasNode:
			behind, known := r.anchors[text(v.Value)]
			if !known {
				r.report(r.place(v.GetToken()), path, "the alias *%s stands for nothing: there is no &%s above it", text(v.Value), text(v.Value))
				return nil, false, false
			}
			n = behind
		case *ast.TagNode:
			textual = textual || v.Start.Value == "!!str"
			n = v.Value
		case nil:
			return nil, textual, false
		default:
			return n, textual, true
		}
	}
	return nil, false, false
}

func text(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// start is the first token of a node: that of a mapping is its first key's.
func start(n ast.Node) *token.Token {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return m.Values[0].Key.GetToken()
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return m.Key.GetToken()
	}
	return n.GetToken()
}

// entry is one key of a mapping.
type entry struct {
	key   string
	at    Place
	value ast.Node
}

// entries lists a mapping's keys, merged ones last; ok is false when the node is
// no mapping.
func (r *reader) entries(n ast.Node, path string, depth int) (out []entry, ok bool) {
	var pairs []*ast.MappingValueNode
	switch v := n.(type) {
	case *ast.MappingNode:
		pairs = v.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{v}
	default:
		return nil, false
	}
	seen := map[string]int{}
	var merged []ast.Node
	for _, pair := range pairs {
		if pair.Key.IsMergeKey() {
			merged = append(merged, pair.Value)
			continue
		}
		e := entry{text(pair.Key), r.place(pair.Key.GetToken()), pair.Value}
		if line, twice := seen[e.key]; twice {
			r.report(e.at, join(path, e.key), "stands here for the second time (first on line %d)", line)
			continue
		}
		seen[e.key] = e.at.Line
		out = append(out, e)
	}
	for _, source := range merged {
		out = append(out, r.merge(source, path, depth, seen)...)
	}
	return out, true
}

// merge gives what `<<: *anchor` brings in beside the keys that are there already.
func (r *reader) merge(source ast.Node, path string, depth int, seen map[string]int) (out []entry) {
	source, _, ok := r.follow(source, path)
	if !ok || depth > depthMax {
		return nil
	}
	if list, isList := source.(*ast.SequenceNode); isList {
		for _, one := range list.Values {
			out = append(out, r.merge(one, path, depth+1, seen)...)
		}
		return out
	}
	more, isMapping := r.entries(source, path, depth+1)
	if !isMapping {
		r.report(r.place(start(source)), join(path, "<<"), "only a mapping can be merged in")
	}
	for _, e := range more {
		if _, there := seen[e.key]; !there {
			seen[e.key] = e.at.Line
			out = append(out, e)
		}
	}
	return out
}
