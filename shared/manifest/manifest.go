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
	// Place is where the object begins.
	Place
	Kind cluster.Kind
	// Object has the defaults that the API server would set. It is nil for kinds
	// that planning does not read.
	Object cluster.Object
	places map[string]Place
}

// At is where a field stands, or the field around it when it is not written.
func (d Document) At(path string) Place {
	for path != "" {
		if place, ok := d.places[path]; ok {
			return place
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.Place
}

// Option changes how a file is read.
type Option func(*options)

type options struct{ vars map[string]string }

// Expand fills in ${NAME} for each name that has a value; others stay as they
// are, and Lint speaks of them.
func Expand(vars map[string]string) Option {
	return func(o *options) { o.vars = vars }
}

// Read reads all documents of a file; name is how messages call it. An error is
// a fault.Invalid around Problems, and then there are no documents.
func Read(name string, data []byte, opts ...Option) ([]Document, error) {
	var o options
	for _, option := range opts {
		option(&o)
	}
	chunks, what := split(data)
	if what != "" {
		return nil, refuse(name, []Problem{{Place: Place{File: name, Line: 1}, What: what}})
	}
	var documents []Document
	var problems []Problem
	for _, c := range chunks {
		c.text = expand(c.text, o.vars)
		bodies, line, column, what := parse(c)
		if what != "" {
			problems = append(problems, Problem{Place{name, c.before + line, column}, "", what})
			continue
		}
		for _, body := range bodies {
			got, wrong := document(name, c, body)
			documents, problems = append(documents, got...), append(problems, wrong...)
		}
	}
	if len(problems) > 0 {
		return nil, refuse(name, problems)
	}
	return documents, nil
}

func refuse(name string, problems []Problem) error {
	return fault.E("reading "+name, fault.Invalid, bounded(problems))
}

// Objects are the objects of documents that have one.
func Objects(documents []Document) []cluster.Object {
	var out []cluster.Object
	for _, d := range documents {
		if d.Object != nil {
			out = append(out, d.Object)
		}
	}
	return out
}

// document reads one syntax tree: an object, or a list of them.
func document(name string, c chunk, body ast.Node) ([]Document, []Problem) {
	r := &reader{file: name, before: c.before, anchors: map[string]ast.Node{}}
	documents := r.document(body, 0)
	if len(r.problems) > 1 && flattened(c.text) {
		// One lost indentation makes many wrong fields; only the cause helps.
		first := bounded(r.problems).List[0]
		first.Path, first.What = "", lostIndentation
		return nil, []Problem{first}
	}
	return documents, r.problems
}

func (r *reader) document(body ast.Node, depth int) []Document {
	body, _, ok := r.follow(body, "")
	if !ok || !r.affordable(body, "", depth) {
		return nil
	}
	if s, isScalar := scalarOf(body); isScalar && s.value == nil {
		return nil
	}
	at := r.place(start(body))
	entries, ok := r.entries(body, "", depth)
	if !ok {
		r.report(at, "", "%s stands where an object is expected: begin with apiVersion and kind", noun(r.anything(body, "", depth)))
		return nil
	}
	apiVersion, kind := r.head(entries, "apiVersion"), r.head(entries, "kind")
	if items, isList := itemsOf(entries, kind); isList {
		return r.items(items, depth)
	}
	if apiVersion == "" || kind == "" {
		r.report(at, "", "%s", headless(entries))
		return nil
	}
	found, what := judge(apiVersion, kind)
	if what != "" {
		r.report(at, "", "%s", what)
		return nil
	}
	object := newObject(found)
	if object == nil {
		return []Document{{Place: at, Kind: found}}
	}
	places, ok := r.fill(object, found, body, at, depth)
	if !ok {
		return nil
	}
	return []Document{{at, found, object, places}}
}

// head reads one of the two fields that say what the document is.
func (r *reader) head(entries []entry, key string) string {
	for _, e := range entries {
		if e.key != key {
			continue
		}
		if n, _, ok := r.follow(e.value, key); ok {
			if s, isScalar := scalarOf(n); isScalar {
				return strings.TrimSpace(s.written)
			}
		}
	}
	return ""
}

func itemsOf(entries []entry, kind string) (ast.Node, bool) {
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

// items reads a List as kubectl writes one.
func (r *reader) items(n ast.Node, depth int) (out []Document) {
	n, _, ok := r.follow(n, "items")
	if !ok {
		return nil
	}
	list, isList := n.(*ast.SequenceNode)
	if !isList {
		if s, isScalar := scalarOf(n); !isScalar || s.value != nil {
			r.report(r.place(start(n)), "items", "a list is expected")
		}
		return nil
	}
	for _, item := range list.Values {
		if item != nil {
			out = append(out, r.document(item, depth+1)...)
		}
	}
	return out
}

// headless says why a document without apiVersion or kind is none.
func headless(entries []entry) string {
	for _, e := range entries {
		switch e.key {
		case "serviceAccount", "settings", "controller", "replicas", "replicaCount", "image":
			return "apiVersion and kind are missing: these look like Helm values; read what `helm template` makes of them"
		case "spec", "metadata", "requirements", "data":
			return "apiVersion and kind are missing: this looks like a part of an object"
		}
	}
	return "apiVersion and kind are missing"
}

// fill reads the document into the object; ok is false when it had problems.
func (r *reader) fill(object cluster.Object, kind cluster.Kind, body ast.Node, at Place, depth int) (places map[string]Place, ok bool) {
	before := len(r.problems)
	r.kind, r.root = kind.Kind, reflect.TypeOf(object).Elem()
	r.native = !strings.HasPrefix(kind.Group, "karpenter.")
	r.places = map[string]Place{}
	value, _ := r.value(body, r.root, "", depth)
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
	object.GetObjectKind().SetGroupVersionKind(gvk(kind))
	d := Document{at, kind, object, r.places}
	r.problems = append(r.problems, invalid(d)...)
	return r.places, len(r.problems) == before
}
