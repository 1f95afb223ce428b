package convert

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// line is one printed line. from is the line of the file that it comes from, or the closest one.
type line struct {
	text string
	from int
}

// print returns the document as text: unchanged parts as written, with all comments.
// ok is false if no text was found that reads as the tree.
func (t *tree) print() (out []line, ok bool) {
	if t.root == nil || !t.root.isChanged() {
		return t.verbatim(1, len(t.lines), 0), true
	}
	if isJSON(t.lines) {
		return t.printJSON(), true
	}
	for _, try := range []func() []line{t.printTree, t.printAnew} {
		out = t.addComments(try())
		if again, problem := parseTree(joinLines(out)); problem == nil && again.root != nil && again.root.fingerprint() == t.root.fingerprint() {
			return out, true
		}
	}
	return nil, false
}

func joinLines(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// verbatim returns lines as written, moved to the right or left.
func (t *tree) verbatim(first, last, delta int) (out []line) {
	for number := first; number <= last; number++ {
		out = append(out, line{indentLine(t.lines[number-1], delta), number})
	}
	return out
}

func indentLine(text string, delta int) string {
	switch {
	case isBlank(text):
		return text
	case delta >= 0:
		return strings.Repeat(" ", delta) + text
	}
	spaces := len(text) - len(strings.TrimLeft(text, " "))
	return text[min(-delta, spaces):]
}

// printTree prints changed parts again and all others as written.
func (t *tree) printTree() (out []line) {
	if t.root.flow || t.root.kind != mappingNode {
		return t.printAnew()
	}
	first := len(t.lines) + 1
	for _, e := range t.root.entries {
		if e.head > 0 {
			first = min(first, e.head)
		}
	}
	out = t.verbatim(1, min(first-1, t.root.line-1), 0)
	out = append(out, t.printEntries(t.root, 0)...)
	return append(out, t.verbatim(t.last+1, len(t.lines), 0)...)
}

// printAnew prints the document without its lines, except those above it.
func (t *tree) printAnew() (out []line) {
	if len(t.lines) > 0 && strings.HasPrefix(t.lines[0], "---") {
		out = append(out, line{"---", 1})
	}
	return append(out, t.printEntries(t.root.clone(), 0)...)
}

func (t *tree) printEntries(n *node, indent int) (out []line) {
	for _, e := range n.entries {
		head, body := t.printEntry(n, e, indent)
		out = append(append(out, head...), body...)
	}
	return out
}

// printEntry returns the lines above an entry, and its own.
func (t *tree) printEntry(parent *node, e *entry, indent int) (head, body []line) {
	if e.first == 0 || parent.flow {
		for _, comment := range e.comments {
			head = append(head, line{strings.Repeat(" ", indent) + comment, 0})
		}
		return head, t.printValue(e, strings.Repeat(" ", indent)+prefix(parent, e), indent, "")
	}
	delta := indent - (e.column - 1)
	head = t.verbatim(e.head, e.first-1, delta)
	if parent.kind == listNode && e.value.kind == mappingNode && e.value.isChanged() && len(e.value.entries) > 0 {
		return t.printItem(head, e, indent)
	}
	if !e.value.isChanged() {
		if body = t.verbatimEntry(e, delta, indent); body != nil {
			return head, body
		}
	}
	return head, t.printValue(e, strings.Repeat(" ", indent)+prefix(parent, e), indent, t.trailing(e.first))
}

// prefix returns what stands before a value.
func prefix(parent *node, e *entry) string {
	if parent.kind == listNode {
		return "-"
	}
	return formatKey(e.key) + ":"
}

// trailing returns the comment behind the text of a line.
func (t *tree) trailing(number int) string {
	for _, c := range t.comments {
		if c.Line == number && !c.Alone {
			return " " + c.Text
		}
	}
	return ""
}

// verbatimEntry returns the lines of an unchanged entry, whose key may have another name now.
func (t *tree) verbatimEntry(e *entry, delta, indent int) []line {
	body := t.verbatim(e.first, e.last, delta)
	text := strings.Repeat(" ", indent) + t.lines[e.first-1][e.column-1:]
	if e.key != e.writtenKey {
		rest, found := cutKey(text[indent:], e.writtenKey)
		if !found {
			return nil
		}
		text = text[:indent] + formatKey(e.key) + rest
	}
	body[0].text = text
	return body
}

func cutKey(text, key string) (rest string, found bool) {
	for _, written := range []string{key, `"` + key + `"`, "'" + key + "'"} {
		if rest, found = strings.CutPrefix(text, written); found {
			return rest, true
		}
	}
	return "", false
}

// printItem prints a list's item that is a mapping. Comments of its first entry go above the dash.
func (t *tree) printItem(head []line, e *entry, indent int) ([]line, []line) {
	offset := 2
	if first := e.value.entries[0]; first.first >= e.first && first.last <= e.last && first.column > e.column {
		offset = first.column - e.column
	}
	above, body := t.printEntry(e.value, e.value.entries[0], indent+offset)
	for _, l := range above {
		head = append(head, line{indentLine(l.text, -offset), l.from})
	}
	rest := *e.value
	rest.entries = e.value.entries[1:]
	body = append(body, t.printEntries(&rest, indent+offset)...)
	body[0].text = strings.Repeat(" ", indent) + "-" + body[0].text[indent+1:]
	return head, body
}

// printValue prints a value that is not as written, behind the text start.
func (t *tree) printValue(e *entry, start string, indent int, comment string) (out []line) {
	n := e.value
	if n.kind == scalarNode {
		text, more := formatScalar(n, indent+2)
		out = append(out, line{start + " " + text + comment, e.first})
		for _, l := range more {
			out = append(out, line{l, e.first})
		}
		return out
	}
	if len(n.entries) == 0 {
		return append(out, line{start + map[nodeKind]string{mappingNode: " {}", listNode: " []"}[n.kind] + comment, e.first})
	}
	if strings.HasSuffix(start, "-") {
		if n.kind == mappingNode {
			head, body := t.printItem(nil, &entry{value: n}, indent)
			return append(head, body...)
		}
		out = t.printEntries(n, indent+2)
		out[0].text = start + out[0].text[indent+1:]
		return out
	}
	out = append(out, line{start + comment, e.first})
	return append(out, t.printEntries(n, indent+t.offsetOf(e))...)
}

// offsetOf returns how far the entries of a value are indented below their key.
func (t *tree) offsetOf(e *entry) int {
	if e.first > 0 && !e.value.flow && !e.copied && e.value.line > e.first && e.value.column >= e.column {
		return e.value.column - e.column
	}
	if e.value.kind == listNode {
		return t.offset
	}
	return 2
}

// addComments adds the comments that are not in the text above the object.
func (t *tree) addComments(out []line) []line {
	have := map[string]int{}
	for _, c := range manifest.Comments(joinLines(out)) {
		have[c.Text]++
	}
	var lost []line
	for _, c := range t.comments {
		if have[c.Text]--; have[c.Text] < 0 {
			lost = append(lost, line{strings.TrimRight(c.Text, " "), c.Line})
		}
	}
	if len(lost) == 0 {
		return out
	}
	at := 0
	for at < len(out) && (isBlank(out[at].text) || strings.HasPrefix(out[at].text, "#") || strings.HasPrefix(out[at].text, "---") || strings.HasPrefix(out[at].text, "%")) {
		at++
	}
	return append(append(append([]line{}, out[:at]...), lost...), out[at:]...)
}
