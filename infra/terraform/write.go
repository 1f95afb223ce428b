package terraform

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// literal returns the expression of a value without alternatives.
func (w writer) literal(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return w.text(v)
	case document:
		return "jsonencode(" + w.literal(v.value) + ")"
	case extended:
		return "merge(" + w.literal(v.value) + ", " + v.variable + ")"
	case joined:
		return "join(" + w.literal(v.separator) + ", " + w.literal(v.items) + ")"
	case map[string]any:
		lines := make([]string, 0, len(v))
		for _, key := range sortedKeys(v) {
			lines = append(lines, w.key(key)+" = "+w.literal(v[key]))
		}
		return braces(lines)
	case []any:
		// An item of a list variable is more than one.
		return w.listLiteral(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool, json.Number:
		return fmt.Sprint(v)
	}
	panic(fmt.Sprintf("no expression for %T", value))
}

func (w writer) listLiteral(list []any) string {
	plain := true
	items := make([]string, len(list))
	for i, item := range list {
		text, _ := item.(string)
		plain = plain && !strings.Contains(text, opening+each)
		items[i] = w.literal(item)
	}
	if plain {
		return brackets(items)
	}
	return w.list(list, nil)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// key returns the key of an object's member.
func (w writer) key(key string) string {
	if identifier.MatchString(key) {
		return key
	}
	return w.quote(key)
}

// text returns the expression of a text: the expression itself if it is nothing else.
func (w writer) text(text string) string {
	if found := interpolation.FindString(text); found == text && found != "" && !strings.HasPrefix(text, opening+each) {
		return w.reference(text[len(opening) : len(text)-len(closing)])
	}
	return w.quote(text)
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "${", "$${", "%{", "%%{")

func (w writer) quote(text string) string {
	if text[:min(len(text), len(opening+each))] == opening+each && strings.Index(text, closing) == len(text)-len(closing) {
		return "item"
	}
	var out strings.Builder
	out.WriteByte('"')
	for {
		plain, rest, found := strings.Cut(text, opening)
		out.WriteString(escapes.Replace(plain))
		if !found {
			return out.String() + `"`
		}
		expression, after, _ := strings.Cut(rest, closing)
		if strings.HasPrefix(expression, each) {
			expression = "item"
		}
		out.WriteString("${" + w.reference(expression) + "}")
		text = after
	}
}

var address = regexp.MustCompile(`^(aws_\w+\.\w+)\.`)

// reference adds the index to the reference to a resource with a count.
func (w writer) reference(expression string) string {
	if found := address.FindStringSubmatch(expression); found != nil && w.counted[found[1]] {
		return found[1] + "[0]" + expression[len(found[1]):]
	}
	return expression
}

// lineMax is the length up to which an object or a list is written on one line.
const lineMax = 100

func braces(lines []string) string {
	if len(lines) == 0 {
		return "{}"
	}
	if short := strings.Join(lines, ", "); len(short) < lineMax && !strings.Contains(short, "\n") {
		return "{ " + short + " }"
	}
	return "{\n" + strings.Join(lines, "\n") + "\n}"
}

func brackets(items []string) string {
	short := strings.Join(items, ", ")
	if len(items) == 1 || len(short) < lineMax && !strings.Contains(short, "\n") {
		return "[" + short + "]"
	}
	return "[\n" + strings.Join(items, ",\n") + ",\n]"
}

func call(function string, arguments []string) string {
	if short := strings.Join(arguments, ", "); len(short) < lineMax && !strings.Contains(short, "\n") {
		return function + "(" + short + ")"
	}
	return function + "(\n" + strings.Join(arguments, ",\n") + ",\n)"
}
