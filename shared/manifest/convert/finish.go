package convert

import (
	"errors"
	"strings"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// finish prints the files, reads them strictly as Joist does, and returns the result.
func (c *converter) finish() ConversionResult {
	var r ConversionResult
	var names []string
	var read []manifest.Document
	origins := map[string][]int{}
	for _, f := range c.files {
		out := c.printFile(f)
		names = append(names, f.name)
		if f.kind == Values && f.name == c.options.ValuesInput {
			for _, s := range f.sections {
				mergeValues(c.values, s.tree.root)
			}
			continue
		}
		r.Files = append(r.Files, FileResult{Name: f.name, Text: []byte(out.text), Changed: out.text != f.raw(), Kind: f.kind})
		if f.kind != Manifests {
			continue
		}
		documents, problems := readResult(f.name, out)
		for _, p := range problems {
			c.addProblem(c.translate(Remark{p.Place, Unrepaired, p.Path, p.Text, ""}, out.origins))
		}
		read = append(read, documents...)
		origins[f.name] = out.origins
	}
	if c.options.Lint {
		for _, w := range manifest.Lint(read) {
			c.remarks = append(c.remarks, c.translate(Remark{w.Place, Warning, w.Path, w.Text, ""}, origins[w.File]))
		}
	}
	if len(c.values.entries) > 0 {
		r.Values = joinLines((&tree{offset: 2}).printEntries(c.values, 0))
	}
	r.Remarks = sortRemarks(c.remarks, names)
	return r
}

// addProblem adds a problem of the result, unless a remark about the same field says more.
func (c *converter) addProblem(r Remark) {
	for _, have := range c.remarks {
		if have.File == r.File && have.Line == r.Line && have.Path == r.Path && have.Severity == Unrepaired {
			return
		}
	}
	c.remarks = append(c.remarks, r)
}

func (f *file) raw() string {
	var b strings.Builder
	for _, s := range f.sections {
		b.WriteString(s.raw)
	}
	return b.String()
}

// printed is the new text of a file.
type printed struct {
	text string
	// origins has for each line of the text the line of the input that it comes from.
	origins []int
	// parts are the texts of the sections that have manifests, and the lines above each.
	parts []printedPart
}

type printedPart struct {
	text   string
	before int
}

// translate gives a remark about the result its place in the input.
func (c *converter) translate(r Remark, origins []int) Remark {
	if r.Line >= 1 && r.Line <= len(origins) {
		if from := origins[r.Line-1]; from != r.Line {
			r.Line, r.Column = from, 0
		}
	}
	return r
}

// readResult reads the sections with manifests one by one, because a problem of one hides the others.
func readResult(name string, out printed) (documents []manifest.Document, problems []manifest.Problem) {
	for _, part := range out.parts {
		found, err := manifest.Read(name, []byte(part.text))
		if list, ok := errors.AsType[*manifest.Problems](err); ok {
			for _, p := range list.List {
				p.Line += part.before
				problems = append(problems, p)
			}
		}
		for i := range found {
			found[i].Move(part.before)
		}
		documents = append(documents, found...)
	}
	return documents, problems
}

// printFile prints the sections of a file.
func (c *converter) printFile(f *file) (out printed) {
	var b strings.Builder
	count := 0
	for _, s := range f.sections {
		text, from := c.printSection(s)
		if s.kind == manifestSection && !s.broken {
			out.parts = append(out.parts, printedPart{strings.TrimPrefix(text, "\uFEFF"), count})
		}
		if n := b.Len(); n > 0 && text != s.raw && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(text)
		lines := strings.Count(text, "\n")
		if text != "" && !strings.HasSuffix(text, "\n") {
			lines++
		}
		for i := range lines {
			origin := s.before + 1
			if i < len(from) {
				origin = s.before + max(1, from[i])
			} else if from == nil {
				origin += i
			}
			out.origins = append(out.origins, origin)
		}
		count += lines
	}
	out.text = b.String()
	return out
}

// printSection returns the text of a section, and the line of the section for each of its lines, or nil if
// the text is unchanged.
func (c *converter) printSection(s *section) (text string, from []int) {
	if s.kind == settingsSection || s.kind == groupSection {
		if s.replaced == "" {
			return s.raw, nil
		}
		return s.restore(s.replaced), []int{}
	}
	if !s.isConvertible() || !s.reindented && !s.isChanged() {
		return s.raw, nil
	}
	lines, ok := s.tree.print()
	if !ok {
		s.broken = true
		c.remarks = append(c.remarks, Remark{manifest.Place{File: s.file.name, Line: s.before + 1}, Unrepaired, "", "the document cannot be rewritten without loss, and stays as it is", "write it without aliases and in blocks, without { and }"})
		return s.raw, nil
	}
	for _, o := range s.objects {
		if o.added {
			lines = append(lines, line{"---", o.root.line})
			lines = append(lines, s.printAdded(o)...)
		}
	}
	for _, text := range s.below {
		lines = append(lines, line{text: text})
	}
	last := 1
	for i, l := range lines {
		if l.from > 0 {
			last = l.from
		}
		lines[i].from = last
		from = append(from, last)
	}
	return s.restore(joinLines(lines)), from
}

// isChanged reports whether a section is not as written.
func (s *section) isChanged() bool {
	if s.tree.root.isChanged() {
		return true
	}
	for _, o := range s.objects {
		if o.added {
			return true
		}
	}
	return false
}

// printAdded prints an object that the conversion added, in the form of its document.
func (s *section) printAdded(o *object) []line {
	added := &tree{root: o.root, offset: s.tree.offset}
	out := added.printEntries(o.root, 0)
	if isJSON(s.tree.lines) {
		out = added.printJSON()
	}
	for i := range out {
		out[i].from = o.root.line
	}
	return out
}
