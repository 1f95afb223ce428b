package manifest

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Document is one object of a file.
type Document struct {
	// Place is the start of the object.
	Place
	Kind cluster.Kind
	// Object has the API server's defaults. It is nil for kinds that planning does not read.
	Object cluster.Object
	places map[string]Place
}

// At returns the place of a field, or of its nearest written parent.
func (d Document) At(path string) Place {
	for path != "" {
		if place, ok := d.places[path]; ok {
			return place
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.Place
}

// Option is an option of Read.
type Option func(*options)

type options struct{ vars map[string]string }

// Expand replaces ${NAME} for each name in vars. Other names stay, and Lint warns about them.
func Expand(vars map[string]string) Option {
	return func(o *options) { o.vars = vars }
}

// Read reads all documents of a file. Messages refer to the file by name. An error is a
// fault.Invalid that wraps Problems.
func Read(name string, data []byte, opts ...Option) ([]Document, error) {
	var o options
	for _, option := range opts {
		option(&o)
	}
	chunks, what := splitDocuments(data)
	if what != "" {
		return nil, newReadError(name, []Problem{{Place: Place{File: name, Line: 1}, Text: what}})
	}
	var documents []Document
	var problems []Problem
	for _, c := range chunks {
		c.text = expandPlaceholders(c.text, o.vars)
		bodies, line, column, what := parseChunk(c)
		if what != "" {
			problems = append(problems, Problem{Place{name, c.before + line, column}, "", what})
			continue
		}
		for _, body := range bodies {
			got, wrong := readDocument(name, c, body)
			documents, problems = append(documents, got...), append(problems, wrong...)
		}
	}
	if len(problems) > 0 {
		return nil, newReadError(name, problems)
	}
	return documents, nil
}

func newReadError(name string, problems []Problem) error {
	return fault.E("reading "+name, fault.Invalid, limitProblems(problems))
}

// Objects returns the objects of the documents that have one.
func Objects(documents []Document) []cluster.Object {
	var out []cluster.Object
	for _, d := range documents {
		if d.Object != nil {
			out = append(out, d.Object)
		}
	}
	return out
}

// readDocument reads one syntax tree, which is an object or a list of objects.
func readDocument(name string, c chunk, body ast.Node) ([]Document, []Problem) {
	r := &reader{file: name, before: c.before, anchors: map[string]ast.Node{}, places: map[string]Place{}}
	documents := r.readDocument(body, 0)
	if len(r.problems) > 1 && lacksIndentation(c.text) {
		// Lost indentation causes many problems; only the first helps.
		first := limitProblems(r.problems).List[0]
		first.Path, first.Text = "", lostIndentation
		return nil, []Problem{first}
	}
	return documents, r.problems
}

func (r *reader) readDocument(body ast.Node, depth int) []Document {
	body, _, ok := r.resolveNode(body, "")
	if !ok || !r.countValue(body, "", depth) {
		return nil
	}
	if s, isScalar := scalarOf(body); isScalar && s.value == nil {
		return nil
	}
	at := r.placeOf(firstToken(body))
	entries, ok := r.listEntries(body, "", depth)
	if !ok {
		r.report(at, "", "expected an object with apiVersion and kind, got %s", describeValue(r.readUntyped(body, "", depth)))
		return nil
	}
	apiVersion, kind := r.readHeader(entries, "apiVersion"), r.readHeader(entries, "kind")
	if items, isList := listItems(entries, kind); isList {
		return r.readItems(items, depth)
	}
	if apiVersion == "" || kind == "" {
		r.report(at, "", "%s", explainMissingHeader(entries))
		return nil
	}
	found, what := findKind(apiVersion, kind)
	if what != "" {
		r.report(at, "", "%s", what)
		return nil
	}
	object := newObject(found)
	if object == nil {
		return []Document{{Place: at, Kind: found}}
	}
	places, ok := r.fillObject(object, found, body, at, depth)
	if !ok {
		return nil
	}
	return []Document{{at, found, object, places}}
}

// readHeader returns the value of apiVersion or kind.
func (r *reader) readHeader(entries []entry, key string) string {
	for _, e := range entries {
		if e.key != key {
			continue
		}
		if n, _, ok := r.resolveNode(e.value, key); ok {
			if s, isScalar := scalarOf(n); isScalar {
				return strings.TrimSpace(s.written)
			}
		}
	}
	return ""
}

func listItems(entries []entry, kind string) (ast.Node, bool) {
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	for _, e := range entries {
		if e.key == "items" {
			return e.value, true
		}
	}
	return nil, kind == "List"
}

// readItems reads the items of a List.
func (r *reader) readItems(n ast.Node, depth int) (out []Document) {
	n, _, ok := r.resolveNode(n, "items")
	if !ok {
		return nil
	}
	list, isList := n.(*ast.SequenceNode)
	if !isList {
		if s, isScalar := scalarOf(n); !isScalar || s.value != nil {
			r.report(r.placeOf(firstToken(n)), "items", "expected a list")
		}
		return nil
	}
	for _, item := range list.Values {
		if item != nil {
			out = append(out, r.readDocument(item, depth+1)...)
		}
	}
	return out
}

// explainMissingHeader returns the problem of a document without apiVersion or kind.
func explainMissingHeader(entries []entry) string {
	for _, e := range entries {
		switch e.key {
		case "serviceAccount", "settings", "controller", "replicas", "replicaCount", "image":
			return "apiVersion and kind are missing: these look like Helm values; read the output of `helm template`"
		case "spec", "metadata", "requirements", "data":
			return "apiVersion and kind are missing: this looks like a part of an object"
		}
	}
	return "apiVersion and kind are missing"
}

// fillObject reads the document into the object; ok is false if it has problems.
func (r *reader) fillObject(object cluster.Object, kind cluster.Kind, body ast.Node, at Place, depth int) (places map[string]Place, ok bool) {
	before := len(r.problems)
	r.kind, r.root = kind.Kind, reflect.TypeOf(object).Elem()
	r.native = !strings.HasPrefix(kind.Group, "karpenter.")
	r.places = map[string]Place{}
	value, _ := r.readValue(body, r.root, "", depth)
	fields, isMapping := value.(map[string]any)
	if !isMapping || len(r.problems) > before {
		return nil, false
	}
	setDefaults(kind, fields)
	text, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(text, object)
	}
	if err != nil {
		r.report(at, "", "cannot be read as %s: %v", kind.Kind, err)
		return nil, false
	}
	object.GetObjectKind().SetGroupVersionKind(groupVersionKind(kind))
	d := Document{at, kind, object, r.places}
	r.problems = append(r.problems, validate(d)...)
	return r.places, len(r.problems) == before
}
