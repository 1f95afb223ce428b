package manifest

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of one document. The parser recurses, so depth is bounded by the
// tokens before it starts; its time grows with the square of a mapping's keys.
const (
	depthMax  = 100
	tokensMax = 2_000_000
	keysMax   = 10_000
)

// parseChunk returns the syntax trees of one chunk, or the place and text of an error.
func parseChunk(c chunk) (bodies []ast.Node, line, column int, what string) {
	if line, what = c.checkText(); what != "" {
		return nil, line, 0, what
	}
	defer func() {
		if cause := recover(); cause != nil { // the library may panic
			bodies, line, column, what = nil, 1, 0, fmt.Sprintf("cannot be read as YAML (%v)", cause)
		}
	}()
	tokens := lexer.Tokenize(c.text)
	if line, what = checkTokens(tokens); what != "" {
		return nil, line, 0, what
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, column, what = explainSyntaxError(err, c.text)
		return nil, line, column, what
	}
	for _, document := range file.Docs {
		if document.Body != nil {
			bodies = append(bodies, document.Body)
		}
	}
	return bodies, 0, 0, ""
}

// checkTokens returns the limit that the tokens exceed, and the line.
func checkTokens(tokens token.Tokens) (line int, what string) {
	if len(tokens) > tokensMax {
		return 1, fmt.Sprintf("the document has more than %d words", tokensMax)
	}
	flow, inARow := 0, 0
	// By column, in the mapping that is open there; within braces, where columns
	// mean nothing, by their depth below zero.
	keys := map[int]int{}
	for i, t := range tokens {
		at := t.Position.Column
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			delete(keys, -flow)
			flow--
		case token.SequenceEntryType:
			maps.DeleteFunc(keys, func(column, _ int) bool { return column > at })
			inARow++
		case token.MappingKeyType, token.TagType, token.AnchorType:
			inARow++
		case token.MappingValueType:
			inARow = 0
			if flow > 0 {
				at = -flow
				keys[at]++
			} else if i > 0 {
				at = tokens[i-1].Position.Column
				maps.DeleteFunc(keys, func(column, _ int) bool { return column > at })
				keys[at]++
			}
		default:
			inARow = 0
		}
		if flow > depthMax || inARow > depthMax || len(keys) > depthMax {
			return t.Position.Line, fmt.Sprintf("nested deeper than %d levels", depthMax)
		}
		if keys[at] > keysMax {
			return t.Position.Line, fmt.Sprintf("a mapping with more than %d keys", keysMax)
		}
	}
	return 0, ""
}

// explainSyntaxError returns the place and the text of the parser's error.
func explainSyntaxError(err error, text string) (line, column int, what string) {
	line, what = 1, "invalid YAML: "+err.Error()
	if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		what = "invalid YAML: " + syntax.Message
		if syntax.Token != nil && syntax.Token.Position != nil {
			line, column = syntax.Token.Position.Line, syntax.Token.Position.Column
		}
	}
	return line, column, what + suggestFix(lineAt(text, line), text, what)
}

func lineAt(text string, number int) string {
	for line := range strings.Lines(text) {
		if number--; number == 0 {
			return strings.TrimRight(line, "\n")
		}
	}
	return ""
}

// suggestFix returns a hint about the probable cause of a syntax error.
func suggestFix(line, text, what string) string {
	bare := strings.TrimSpace(line)
	switch {
	case strings.Contains(bare, "{{"):
		return " (this is a Helm template: read the output of `helm template`)"
	case strings.Contains(bare, "${"):
		return " (fill in ${…} first, or put it in quotes)"
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return " (indent with spaces: YAML does not allow tabs)"
	case lacksIndentation(text):
		return " (" + lostIndentation + ")"
	case strings.HasPrefix(bare, "#"):
		return " (a comment cannot stand here)"
	case strings.Contains(what, "not allowed in this context"):
		return " (check the indentation: keys of one mapping start in the same column, and their values further right)"
	}
	return ""
}

const lostIndentation = "every line starts in the first column: the indentation was lost, for example by copying from a web page"

// lacksIndentation reports whether a document of at least five lines has no indentation.
func lacksIndentation(text string) bool {
	lines := 0
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if bare == "" || bare == "---" || bare[0] == '#' {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' || bare[0] == '{' {
			return false
		}
		lines++
	}
	return lines >= 5
}
