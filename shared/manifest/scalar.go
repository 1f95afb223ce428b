package manifest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar is a value that is neither a mapping nor a list. Like kubectl it follows YAML 1.1,
// in which yes is a boolean and 1e3 a number.
type scalar struct {
	// value is nil, a bool, a json.Number or a string.
	value any
	// written is the text in the file.
	written string
}

// scalarOf returns the node's scalar; ok is false for mappings and lists.
func scalarOf(n ast.Node) (s scalar, ok bool) {
	written := ""
	if t := n.GetToken(); t != nil {
		written = t.Value
	}
	switch v := n.(type) {
	case *ast.NullNode:
		return scalar{nil, written}, true
	case *ast.BoolNode:
		return scalar{v.Value, written}, true
	case *ast.IntegerNode:
		return scalar{parseInteger(v.Value, written), written}, true
	case *ast.FloatNode:
		return scalar{json.Number(strconv.FormatFloat(v.Value, 'g', -1, 64)), written}, true
	case *ast.LiteralNode:
		return scalar{v.Value.Value, v.Value.Value}, true
	case *ast.StringNode:
		if v.Token.Type == token.StringType {
			return scalar{parsePlain(v.Value), v.Value}, true
		}
		return scalar{v.Value, v.Value}, true
	case *ast.InfinityNode, *ast.NanNode:
		return scalar{json.Number(written), written}, true // JSON has no such number, so no type accepts it
	}
	return scalar{}, false
}

func parseInteger(value any, written string) any {
	switch v := value.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	}
	return parsePlain(written)
}

// number matches numbers of YAML 1.1 that the parser takes for text.
var number = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// parsePlain returns the value of an unquoted word that the parser took for text.
func parsePlain(word string) any {
	switch strings.ToLower(word) {
	case "y", "yes", "on":
		return true
	case "n", "no", "off":
		return false
	}
	if !number.MatchString(word) {
		return word
	}
	if json.Valid([]byte(word)) {
		return json.Number(word)
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return word
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// describeValue returns a noun for the value's type.
func describeValue(value any) string {
	switch value.(type) {
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case nil:
		return "nothing"
	default:
		return "text"
	}
}
