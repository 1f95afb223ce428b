package manifest

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const (
	// valuesMax is the maximum number of values of a document after expanding aliases.
	valuesMax = 1_000_000
	// recordedMax is the maximum number of recorded problems of a document.
	recordedMax = 1_000
)

// reader reads one document's syntax tree into a Go type.
type reader struct {
	file   string
	before int // lines above the document
	// kind and root are the kind and the Go type of the document.
	kind string
	root reflect.Type
	// native is set for kinds of Kubernetes, in which a null in a map of strings is "".
	native   bool
	anchors  map[string]ast.Node
	places   map[string]Place
	problems []Problem
	values   int
}

func (r *reader) placeOf(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{File: r.file, Line: r.before + 1}
	}
	return Place{r.file, r.before + t.Position.Line, t.Position.Column}
}

func (r *reader) report(at Place, path, format string, args ...any) {
	if len(r.problems) < recordedMax {
		r.problems = append(r.problems, Problem{at, path, fmt.Sprintf(format, args...)})
	}
}

// resolveNode resolves anchors, aliases and tags. textual is set by the tag !!str.
func (r *reader) resolveNode(n ast.Node, path string) (out ast.Node, textual, ok bool) {
	for range depthMax {
		switch v := n.(type) {
		case *ast.AnchorNode:
			r.anchors[nodeText(v.Name)] = v.Value
			n = v.Value
		case *ast.AliasNode:
			behind, known := r.anchors[nodeText(v.Value)]
			if !known {
				r.report(r.placeOf(v.GetToken()), path, "the alias *%s has no anchor: there is no &%s above it", nodeText(v.Value), nodeText(v.Value))
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

func nodeText(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// firstToken returns the first token of a node; for a mapping that is its first key.
func firstToken(n ast.Node) *token.Token {
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

// listEntries returns a mapping's entries, merged ones last; ok is false if the node is not
// a mapping.
func (r *reader) listEntries(n ast.Node, path string, depth int) (out []entry, ok bool) {
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
		e := entry{nodeText(pair.Key), r.placeOf(pair.Key.GetToken()), pair.Value}
		if line, twice := seen[e.key]; twice {
			r.report(e.at, joinPath(path, e.key), "duplicate key (first on line %d)", line)
			continue
		}
		seen[e.key] = e.at.Line
		out = append(out, e)
	}
	for _, source := range merged {
		out = append(out, r.mergeEntries(source, path, depth, seen)...)
	}
	return out, true
}

// mergeEntries returns the entries that `<<: *anchor` adds to the existing keys.
func (r *reader) mergeEntries(source ast.Node, path string, depth int, seen map[string]int) (out []entry) {
	source, _, ok := r.resolveNode(source, path)
	if !ok || depth > depthMax {
		return nil
	}
	if list, isList := source.(*ast.SequenceNode); isList {
		for _, one := range list.Values {
			out = append(out, r.mergeEntries(one, path, depth+1, seen)...)
		}
		return out
	}
	more, isMapping := r.listEntries(source, path, depth+1)
	if !isMapping {
		r.report(r.placeOf(firstToken(source)), joinPath(path, "<<"), "only a mapping can be merged")
	}
	for _, e := range more {
		if _, there := seen[e.key]; !there {
			seen[e.key] = e.at.Line
			out = append(out, e)
		}
	}
	return out
}
