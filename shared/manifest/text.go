package manifest

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet"
)

// FileMax is the maximum size of a file, in bytes.
const FileMax = fileMax

// ParseText returns the syntax tree of one YAML document, within the limits of Read. The body is nil
// if the text is empty, or if it has a problem, whose place counts from the text's first line.
func ParseText(text string) (body ast.Node, problem *Problem) {
	bodies, line, column, what := parseChunk(chunk{text: text})
	switch {
	case what != "":
		return nil, &Problem{Place{Line: line, Column: column}, "", what}
	case len(bodies) > 1:
		return nil, &Problem{Place{Line: 1}, "", fmt.Sprintf("%d documents without a line --- between them: write --- before each", len(bodies))}
	case len(bodies) == 0:
		return nil, nil
	}
	return bodies[0], nil
}

// Comment is one comment of a YAML text.
type Comment struct {
	// Line and Column count from 1. Alone is set if nothing stands before it on the line.
	Line, Column int
	Alone        bool
	// Text begins with #.
	Text string
}

// Comments returns the comments of a text that ParseText accepts.
func Comments(text string) (out []Comment) {
	defer func() {
		if recover() != nil { // the library may panic
			out = nil
		}
	}()
	last := 0
	for _, t := range lexer.Tokenize(text) {
		if t.Type == token.CommentType {
			out = append(out, Comment{t.Position.Line, t.Position.Column, t.Position.Line != last, "#" + t.Value})
		}
		last = t.Position.Line
	}
	return out
}

// Scalar returns a scalar's value, which is nil, a bool, a json.Number or a string, and its text in
// the file. ok is false for mappings and lists.
func Scalar(n ast.Node) (value any, written string, ok bool) {
	s, ok := scalarOf(n)
	return s.value, s.written, ok
}

// PlainScalar returns the value of an unquoted word.
func PlainScalar(word string) any { return parsePlain(word) }

// TypeOf returns the Go type of a kind that Read decodes, or nil.
func TypeOf(apiVersion, kind string) reflect.Type {
	found, problem := findKind(apiVersion, kind)
	if problem != "" {
		return nil
	}
	object := newObject(found)
	if object == nil {
		return nil
	}
	return reflect.TypeOf(object).Elem()
}

// CurrentKind returns the kind that replaces a kind of a version that is no longer served.
func CurrentKind(apiVersion, kind string) (now cluster.Kind, old bool) {
	group, version := cutVersion(apiVersion)
	now, found := oldKinds[group+"/"+kind]
	return now, found && version != now.Version
}

// FieldsOf returns the JSON fields of a struct by name; ok is false for other types.
func FieldsOf(t reflect.Type) (fields map[string]reflect.Type, ok bool) {
	t = dereference(t)
	if t == reflect.TypeFor[karpenter.KubeletConfiguration]() {
		t = kubelet.ConfigurationType()
	}
	if t.Kind() != reflect.Struct || hasUnmarshaler(t) {
		return nil, false
	}
	return structFieldsOf(t).byName, true
}

// IsCustom reports whether a type reads its values itself, as quantities do.
func IsCustom(t reflect.Type) bool { return hasUnmarshaler(dereference(t)) }

// JoinPath appends a field to a path, in brackets if the name has special characters.
func JoinPath(path, name string) string { return joinPath(path, name) }

// Move moves the places of a document down by lines.
func (d *Document) Move(lines int) {
	d.Line += lines
	moved := make(map[string]Place, len(d.places))
	for path, place := range d.places {
		place.Line += lines
		moved[path] = place
	}
	d.places = moved
}

// ExpandText replaces ${NAME} for each name in vars, as the option Expand does.
func ExpandText(text string, vars map[string]string) string { return expandPlaceholders(text, vars) }
