package convert

import (
	"slices"
	"strings"
)

// linesMax is the maximum number of lines whose indentation is repaired.
const linesMax = 5_000

// lacksStructure reports whether a document was read, but has lost indentation: a field is empty, and fields that
// belong into it follow as unknown ones.
func (c *converter) lacksStructure(root *node) bool {
	s := shapeOf(root.textAt("apiVersion"), root.textAt("kind"))
	if root.get("apiVersion") == nil && isValues(root) {
		s = valuesShape()
	}
	return s != nil && countUnknown(root, s) > 0 && hasEmpty(root, s)
}

// countUnknown returns the number of fields that a shape does not have.
func countUnknown(n *node, s *shape) (count int) {
	s.load()
	for _, e := range n.entries {
		inner := s.values
		switch {
		case n.kind == listNode:
			inner = s.items
		case s.fields[e.key] != nil:
			inner = s.fields[e.key]
		case s.values == nil && s.fields != nil:
			count++
		}
		if inner != nil {
			count += countUnknown(e.value, inner)
		}
	}
	return count
}

// hasEmpty reports whether a field that should have fields or items is null.
func hasEmpty(n *node, s *shape) bool {
	s.load()
	for _, e := range n.entries {
		inner := s.values
		if n.kind == listNode {
			inner = s.items
		} else if s.fields[e.key] != nil {
			inner = s.fields[e.key]
		}
		if inner != nil && (e.value.isNull() && !inner.isScalar() || hasEmpty(e.value, inner)) {
			return true
		}
	}
	return false
}

// repairIndentation returns the document with the indentation that the fields of its kind demand, and the line of
// its kind; or nil if that is not possible without unknown fields.
func repairIndentation(text string) (*tree, int) {
	lines := splitLines(text)
	if len(lines) > linesMax {
		return nil, 0
	}
	apiVersion, kind, at := findHeader(lines)
	root := shapeOf(apiVersion, kind)
	if apiVersion == "" && looksLikeValues(lines) {
		root, at = valuesShape(), 1
	}
	if root == nil {
		return nil, 0
	}
	r := reindenter{lines: lines, frames: []frame{{shape: root, seen: map[string]bool{}}}}
	if !r.run() {
		return nil, 0
	}
	t, problem := parseTree(strings.Join(r.out, "\n") + "\n")
	if problem != nil || t.root == nil || countUnknown(t.root, root) > 0 || t.root.textAt("kind") != kind {
		return nil, 0
	}
	return t, at
}

// findHeader returns the apiVersion and the kind that a text without structure names.
func findHeader(lines []string) (apiVersion, kind string, at int) {
	for i, text := range lines {
		text = strings.TrimSpace(text)
		if value, found := strings.CutPrefix(text, "apiVersion:"); found && apiVersion == "" {
			apiVersion, at = strings.TrimSpace(value), i+1
		}
		if value, found := strings.CutPrefix(text, "kind:"); found && kind == "" {
			kind = strings.TrimSpace(value)
		}
	}
	return apiVersion, kind, at
}

// frame is an open mapping or list.
type frame struct {
	shape  *shape
	indent int
	list   bool
	seen   map[string]bool
}

// reindenter gives lines their indentation.
type reindenter struct {
	lines  []string
	out    []string
	frames []frame
	// pending are comments and blank lines, which get the indentation of the next line.
	pending []string
}

func (r *reindenter) run() bool {
	for i := 0; i < len(r.lines); i++ {
		text := strings.TrimSpace(r.lines[i])
		if text == "" || text[0] == '#' || text == "---" || strings.HasPrefix(text, "--- ") {
			r.pending = append(r.pending, text)
			continue
		}
		indent, ok := r.place(text)
		if !ok {
			return false
		}
		r.emit(text, indent)
		if literal(text) {
			i = r.copyLiteral(i+1, indent+2)
		}
	}
	r.out = append(r.out, r.pending...)
	return true
}

func (r *reindenter) emit(text string, indent int) {
	for _, above := range r.pending {
		if above != "" && above[0] == '#' {
			above = strings.Repeat(" ", indent) + above
		}
		r.out = append(r.out, above)
	}
	r.pending = nil
	r.out = append(r.out, strings.Repeat(" ", indent)+text)
}

// place returns the indentation of a line, and opens what it begins.
func (r *reindenter) place(text string) (indent int, ok bool) {
	rest, dash := strings.CutPrefix(text, "- ")
	if !dash {
		return r.placeKey(text, len(r.frames)-1)
	}
	rest = strings.TrimSpace(rest)
	for i, f := range slices.Backward(r.frames) {
		if !f.list || !f.shape.accepts(rest) {
			continue
		}
		r.frames = r.frames[:i+1]
		if !f.shape.isScalar() && !isFlow(rest) {
			r.frames = append(r.frames, frame{shape: f.shape, indent: f.indent + 2, seen: map[string]bool{}})
			if _, ok := r.placeKey(rest, len(r.frames)-1); !ok {
				return 0, false
			}
		}
		return f.indent, true
	}
	return 0, false
}

func isFlow(text string) bool { return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") }

// accepts reports whether an item of a list may begin with a text.
func (s *shape) accepts(text string) bool {
	key, _, isKey := cutField(text)
	s.load()
	switch {
	case isFlow(text):
		return !s.isScalar()
	case s.isScalar():
		return !isKey
	case !isKey:
		return false
	}
	return s.fields[key] != nil || s.values != nil
}

// placeKey places a line with a key in the innermost open mapping that has it.
func (r *reindenter) placeKey(text string, from int) (indent int, ok bool) {
	key, value, isKey := cutField(text)
	if !isKey {
		return 0, false
	}
	for i := from; i >= 0; i-- {
		f := r.frames[i]
		if f.list || f.seen[key] {
			continue
		}
		inner := f.shape.field(key)
		if inner == nil && f.shape.values != nil && (value != "" || !f.shape.values.isScalar()) && !r.isField(key, i-1) {
			inner = f.shape.values
		}
		if inner == nil {
			continue
		}
		r.frames = r.frames[:i+1]
		f.seen[key] = true
		if value == "" && !inner.isScalar() {
			r.frames = append(r.frames, frame{shape: inner, indent: f.indent + 2, seen: map[string]bool{}})
			if inner.items != nil {
				r.frames[len(r.frames)-1] = frame{shape: inner.items, indent: f.indent + 2, list: true}
			}
		}
		return f.indent, true
	}
	return 0, false
}

// isField reports whether an outer open mapping has a field that was not written yet.
func (r *reindenter) isField(key string, from int) bool {
	for i := from; i >= 0; i-- {
		if f := r.frames[i]; !f.list && !f.seen[key] && f.shape.field(key) != nil {
			return true
		}
	}
	return false
}

// cutField splits a line into its key and its value, without the comment behind it.
func cutField(text string) (key, value string, ok bool) {
	if text == "" || strings.ContainsRune("{[|>&*!", rune(text[0])) {
		return "", "", false
	}
	if text[0] == '"' || text[0] == '\'' {
		end := strings.IndexByte(text[1:], text[0])
		if end < 0 {
			return "", "", false
		}
		key, text = text[1:end+1], text[end+2:]
		if !strings.HasPrefix(text, ":") {
			return "", "", false
		}
		value = text[1:]
	} else {
		at := strings.Index(text+" ", ": ")
		if at < 0 {
			return "", "", false
		}
		key, value = text[:at], text[at+1:]
	}
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "#") {
		value = ""
	}
	return key, value, true
}

// literal reports whether a line begins a block scalar.
func literal(text string) bool {
	_, value, ok := cutField(strings.TrimPrefix(text, "- "))
	return ok && (strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">"))
}

// copyLiteral copies the lines of a block scalar, which ends where its braces are closed or an open mapping
// continues, and returns the number of its last line.
func (r *reindenter) copyLiteral(from, indent int) int {
	depth, i := 0, from
	for ; i < len(r.lines); i++ {
		text := r.lines[i]
		bare := strings.TrimSpace(text)
		if i > from && depth == 0 && r.endsLiteral(bare) {
			break
		}
		depth += strings.Count(bare, "{") - strings.Count(bare, "}")
		if bare == "" {
			r.out = append(r.out, "")
		} else {
			r.out = append(r.out, strings.Repeat(" ", indent)+strings.TrimRight(text, " \t"))
		}
		if depth == 0 && bare == "}" {
			i++
			break
		}
	}
	return i - 1
}

func (r *reindenter) endsLiteral(text string) bool {
	key, _, isKey := cutField(text)
	return isKey && r.isField(key, len(r.frames)-1)
}
