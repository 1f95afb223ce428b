package convert

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// plainText matches texts that need no quotes in a block, if they are not a number or a word such as yes.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_./$][A-Za-z0-9_./:@%+${}*,()=~-]*$`)

func formatKey(key string) string {
	if plainText.MatchString(key) && isText(key) && !strings.HasSuffix(key, ":") {
		return key
	}
	return quote(key)
}

// isText reports whether a plain word is read as text.
func isText(word string) bool {
	switch strings.ToLower(word) {
	case "null", "true", "false", ".inf", "-.inf", "+.inf", ".nan", "~", "-", "=", "<<":
		return false
	}
	if strings.HasPrefix(word, "0x") || strings.HasPrefix(word, "0b") || strings.HasPrefix(word, "0o") {
		return false
	}
	_, text := manifest.PlainScalar(word).(string)
	return text && !timeLike.MatchString(word)
}

// timeLike matches what some readers of YAML take for numbers or times.
var timeLike = regexp.MustCompile(`^[-+]?[0-9][0-9_,:.-]*(T.*)?$`)

func quote(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// formatScalar returns a scalar as it is printed behind its key, and the lines below.
func formatScalar(n *node, indent int) (text string, more []string) {
	switch v := n.value.(type) {
	case nil:
		return "null", nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case json.Number:
		return v.String(), nil
	case string:
		if more := literalLines(v, indent); more != nil {
			return more[0], more[1:]
		}
		if plainText.MatchString(v) && isText(v) && !strings.HasSuffix(v, ":") {
			return v, nil
		}
		return quote(v), nil
	}
	return "null", nil
}

// literalLines returns a text of several lines as a block scalar, or nil if it needs quotes.
func literalLines(text string, indent int) []string {
	body, ended := strings.CutSuffix(text, "\n")
	if !strings.Contains(body, "\n") || strings.HasPrefix(body, " ") || strings.HasPrefix(body, "\n") || strings.HasSuffix(body, "\n") {
		return nil
	}
	if strings.ContainsFunc(body, needsEscape) {
		return nil
	}
	out := []string{"|-"}
	if ended {
		out[0] = "|"
	}
	for l := range strings.SplitSeq(body, "\n") {
		if l != "" {
			if isBlank(l) {
				return nil
			}
			l = strings.Repeat(" ", indent) + l
		}
		out = append(out, l)
	}
	return out
}

// needsEscape reports whether a block scalar cannot have a character.
func needsEscape(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff
}

// isJSON reports whether a document is one JSON value.
func isJSON(lines []string) bool {
	return json.Valid([]byte(strings.Join(lines, "\n")))
}

// printJSON prints a JSON document in the order of its keys.
func (t *tree) printJSON() (out []line) {
	var b strings.Builder
	writeJSON(&b, t.root, "")
	for l := range strings.SplitSeq(b.String(), "\n") {
		out = append(out, line{l, 1})
	}
	return out
}

func writeJSON(b *strings.Builder, n *node, indent string) {
	const step = "  "
	open, closing := "{", "}"
	switch n.kind {
	case scalarNode:
		b.WriteString(jsonScalar(n.value))
		return
	case listNode:
		open, closing = "[", "]"
	}
	b.WriteString(open)
	for i, e := range n.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + step)
		if n.kind == mappingNode {
			b.WriteString(quote(e.key) + ": ")
		}
		writeJSON(b, e.value, indent+step)
	}
	if len(n.entries) > 0 {
		b.WriteString("\n" + indent)
	}
	b.WriteString(closing)
}

func jsonScalar(value any) string {
	if s, ok := value.(string); ok {
		return quote(s)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(text)
}
