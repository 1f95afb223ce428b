package helm

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value is a documented value of a chart: its comment in values.yaml begins with "--".
type Value struct {
	// Path has dots: settings.clusterName.
	Path string
	// Default is the default as YAML in one line, and Help the comment.
	Default, Help string
}

// Values reads a chart's values.yaml.
func Values(chart string) ([]Value, error) {
	text, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading the values of %s: %w", chart, err)
	}
	return values(document.Content[0], "")
}

func values(mapping *yaml.Node, under string) ([]Value, error) {
	var found []Value
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, value := pair[0], pair[1]
		path := under + key.Value
		_, help, documented := strings.Cut(key.HeadComment, "# -- ")
		switch {
		case documented:
			found = append(found, Value{Path: path, Default: inline(value), Help: strings.ReplaceAll(help, "\n# ", " ")})
		case value.Kind != yaml.MappingNode:
			return nil, fmt.Errorf("values.yaml:%d: %s has no comment. Try: add a line above it that begins with # --", key.Line, path)
		default:
			inner, err := values(value, path+".")
			if err != nil {
				return nil, err
			}
			found = append(found, inner...)
		}
	}
	return found, nil
}

// inline formats a value in one line.
func inline(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		var parts []string
		for pair := range slices.Chunk(node.Content, 2) {
			parts = append(parts, pair[0].Value+": "+inline(pair[1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for _, item := range node.Content {
			parts = append(parts, inline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.ScalarNode:
		if node.Style&yaml.DoubleQuotedStyle != 0 {
			return `"` + node.Value + `"`
		}
		return node.Value
	default:
		return ""
	}
}

// Table returns the values as a Markdown table.
func Table(values []Value) string {
	var b strings.Builder
	b.WriteString("| value | default | |\n|---|---|---|\n")
	for _, v := range values {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.Path, v.Default, strings.ReplaceAll(v.Help, "|", `\|`))
	}
	return b.String()
}

// Keys returns as YAML whether each path is a value ("leaf") or the parent of values
// ("inner"). NOTES.txt uses it to find unknown values.
func Keys(paths []string) (string, error) {
	keys := map[string]string{}
	for _, path := range paths {
		keys[path] = "leaf"
		for i, c := range path {
			if c == '.' && keys[path[:i]] == "" {
				keys[path[:i]] = "inner"
			}
		}
	}
	text, err := yaml.Marshal(keys)
	if err != nil {
		return "", fmt.Errorf("writing the keys: %w", err)
	}
	return string(text), nil
}
