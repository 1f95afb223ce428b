package convert

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// sectionKind is how a section is written.
type sectionKind int

const (
	// plainSection has nothing to convert.
	plainSection sectionKind = iota
	manifestSection
	valuesSection
	// settingsSection is a ConfigMap that becomes a comment with values.
	settingsSection
	groupSection
)

// section is one YAML document of a file, as text. The sections of a file together are the file.
type section struct {
	file *file
	kind sectionKind
	// raw is the text with its line breaks, before the number of lines above it.
	raw    string
	before int
	tree   *tree
	// objects are those of the document, followed by added ones.
	objects []*object
	// reindented has the line of the file of each line of the tree, if the indentation was repaired.
	reindented bool
	// replaced is the new text of a settings section.
	replaced string
	// below are comments that are added at the end of a manifest.
	below  []string
	broken bool
}

// isConvertible reports whether a section's document was read.
func (s *section) isConvertible() bool { return s.tree != nil && s.tree.root != nil && !s.broken }

// readFile splits a file and reads its documents.
func (c *converter) readFile(input Input) *file {
	f := &file{name: input.Name, kind: Manifests}
	if what := checkData(input.Data); what != "" {
		f.sections, f.kind = []*section{{file: f, raw: string(input.Data), broken: true}}, Unreadable
		c.remarks = append(c.remarks, Remark{manifest.Place{File: f.name, Line: 1}, Unrepaired, "", what, ""})
		return f
	}
	if s := (&section{file: f, raw: string(input.Data), kind: groupSection}); c.groups.acceptStream(s, input.Data) {
		f.kind, f.sections = NodeGroups, []*section{s}
		return f
	}
	for _, s := range splitSections(string(input.Data)) {
		s.file = f
		f.sections = append(f.sections, s)
		c.readSection(s)
	}
	return f
}

// sectionsMax is the maximum number of documents of a file.
const sectionsMax = 10_000

// checkData returns the reason why a file is not read at all, or "".
func checkData(data []byte) string {
	if len(data) > manifest.FileMax {
		return fmt.Sprintf("the file has more than %d bytes: split it", manifest.FileMax)
	}
	if i := strings.IndexByte(string(data), 0); i >= 0 {
		return fmt.Sprintf("line %d has a zero byte: the file is not text", 1+strings.Count(string(data[:i]), "\n"))
	}
	number := 0
	for text := range strings.Lines(string(data)) {
		number++
		if !utf8.ValidString(text) {
			return fmt.Sprintf("line %d is not UTF-8: save the file in that encoding", number)
		}
	}
	if n := strings.Count(string(data), "\n---"); n > sectionsMax {
		return fmt.Sprintf("the file has %d documents, more than %d: split it", n, sectionsMax)
	}
	return ""
}

// splitSections splits a file before its document markers.
func splitSections(data string) []*section {
	var out []*section
	start, number, from := 0, 0, 0
	offset := 0
	for text := range strings.Lines(data) {
		rest, marker := strings.CutPrefix(text, "---")
		if marker && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) && offset > start {
			out = append(out, &section{raw: data[start:offset], before: from})
			start, from = offset, number
		}
		offset += len(text)
		number++
	}
	if start < len(data) {
		out = append(out, &section{raw: data[start:], before: from})
	}
	return out
}

// text returns the section with line feeds only and without a byte order mark.
func (s *section) text() string {
	return strings.ReplaceAll(strings.TrimPrefix(s.raw, "\uFEFF"), "\r\n", "\n")
}

// restore gives a new text the line breaks and the byte order mark of the section.
func (s *section) restore(text string) string {
	if !strings.HasSuffix(s.raw, "\n") && !strings.Contains(text, "\n---\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	if strings.Contains(s.raw, "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if strings.HasPrefix(s.raw, "\uFEFF") {
		text = "\uFEFF" + text
	}
	return text
}

// readSection reads a document, after repairing its indentation if needed.
func (c *converter) readSection(s *section) {
	text := s.text()
	read, problem := parseTree(text)
	flat := problem == nil && read.root != nil && c.lacksStructure(read.root)
	if problem != nil || flat {
		if repaired := c.repairSection(s, text); repaired != nil {
			read, problem, flat = repaired, nil, false
		}
	}
	if problem != nil {
		s.broken = true
		place := manifest.Place{File: s.file.name, Line: s.before + problem.Line, Column: problem.Column}
		c.remarks = append(c.remarks, Remark{place, Unrepaired, problem.Path, problem.Text, ""})
		return
	}
	s.tree = read
	if read.root == nil || read.root.isNull() {
		return
	}
	switch {
	case c.groups.accept(s):
		s.kind = groupSection
		s.file.kind = NodeGroups
	case isValues(read.root):
		s.kind = valuesSection
		s.file.kind = Values
	case flat:
		c.nameStructure(s)
	default:
		s.kind = manifestSection
		s.addObjects(read.root, 0)
	}
}

// repairSection returns the document of a section with its indentation repaired, or nil.
func (c *converter) repairSection(s *section, text string) *tree {
	repaired, line := repairIndentation(text)
	if repaired != nil {
		s.reindented = true
		c.remarks = append(c.remarks, Remark{manifest.Place{File: s.file.name, Line: s.before + line}, Check, "", "the indentation was wrong or lost; the fields of the kind give it back", "check which fields belong together"})
	}
	return repaired
}

// nameStructure names a document whose indentation was lost and cannot be repaired. It stays as it is, because
// its fields are not missing but misplaced.
func (c *converter) nameStructure(s *section) {
	s.kind = manifestSection
	root := s.tree.root
	if _, old := manifest.CurrentKind(root.textAt("apiVersion"), root.textAt("kind")); !old {
		return // Reading it names each field.
	}
	s.broken = true
	c.remarks = append(c.remarks, Remark{manifest.Place{File: s.file.name, Line: s.before + max(1, root.line), Column: root.column}, Unrepaired, "",
		"the indentation was lost, and the fields of " + root.textAt("kind") + " do not give it back, because some are unknown", "indent the fields that belong together"})
}

// addObjects adds the objects of a document: itself, or the items of a List.
func (s *section) addObjects(root *node, depth int) {
	apiVersion, kind := root.textAt("apiVersion"), root.textAt("kind")
	if items := root.get("items"); items != nil && strings.HasSuffix(kind, "List") && items.kind == listNode && depth < levelsMax {
		for _, e := range items.entries {
			s.addObjects(e.value, depth+1)
		}
		return
	}
	if root.kind == mappingNode && apiVersion != "" && kind != "" {
		s.objects = append(s.objects, &object{root: root, apiVersion: apiVersion, kind: kind, section: s})
	}
}
