package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// MaxEnvelope is the maximum size of a message in bytes (EventBridge's limit for an entry).
	MaxEnvelope = 256 << 10
	// MaxDepth is the maximum nesting depth of the JSON. Joist's deepest body has 8 levels.
	MaxDepth = 32
	// MaxTokens is the maximum number of JSON tokens in a message; a real one of the maximum size has about 20,000.
	MaxTokens = 100_000
)

// CheckLimits rejects bytes that are too large, not UTF-8, too deep, of too many tokens or not exactly one JSON value,
// before they are decoded into memory.
func CheckLimits(data []byte) error {
	if len(data) > MaxEnvelope {
		return poisonError("%d bytes exceed the limit of %d", len(data), MaxEnvelope)
	}
	if !utf8.Valid(data) {
		return poisonError("not UTF-8")
	}
	// Most texts have too few brackets and bytes to exceed a limit.
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > MaxDepth || len(data) >= MaxTokens {
		depth, tokens := countLevelsAndTokens(data)
		if depth > MaxDepth {
			return poisonError("JSON nests deeper than %d", MaxDepth)
		}
		if tokens > MaxTokens {
			return poisonError("more than %d JSON tokens", MaxTokens)
		}
	}
	if !json.Valid(data) {
		return poisonError("not JSON: %w", withOffset(data, json.Unmarshal(data, new(json.RawMessage))))
	}
	return nil
}

func poisonError(format string, args ...any) error {
	return fault.F("reading a message", fault.Poison, format, args...)
}

// countLevelsAndTokens returns how deep a JSON text nests, and how many tokens it has: brackets, names and scalars. It
// counts a comma or a colon instead of each name and scalar but the first.
func countLevelsAndTokens(data []byte) (deepest, tokens int) {
	level := 0
	tokens = 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfString(data, i)
		case '{', '[':
			level++
			deepest = max(deepest, level)
			tokens++
		case '}', ']':
			level--
			tokens++
		case ',', ':':
			tokens++
		}
	}
	return deepest, tokens
}

// SplitJSON appends the elements of a JSON list, or the names and values of a JSON object alternately. It appends
// nothing if the value does not begin with the bracket. The value must be valid JSON without spaces around it. The parts
// are slices of it.
func SplitJSON(value []byte, bracket byte, into [][]byte) [][]byte {
	if len(value) == 0 || value[0] != bracket {
		return nil
	}
	level, start := 0, 1
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			i = endOfString(value, i)
		case c == '{' || c == '[':
			level++
		case level == 1 && (c == ':' || c == ',' || c == '}' || c == ']'):
			if part := bytes.TrimSpace(value[start:i]); len(part) > 0 { // It is empty in {} and [].
				into = append(into, part)
			}
			start = i + 1
		case c == '}' || c == ']':
			level--
		}
	}
	return into
}

// endOfString returns the index of the quote that ends the string which begins at the index.
func endOfString(text []byte, start int) int {
	at := start + 1
	for at < len(text) && text[at] != '"' {
		if text[at] == '\\' {
			at++ // The next byte does not end the string.
		}
		at++
	}
	return at
}

// decodeName decodes a name of an object, valid UTF-8. Names seldom have escapes.
func decodeName(quoted []byte) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var name string
	err := json.Unmarshal(quoted, &name)
	return name, err
}

// checkNames rejects an object with a duplicate name, because readers disagree on which of its values counts. The value
// must be valid JSON without spaces around it.
func checkNames(value []byte) error {
	for _, element := range SplitJSON(value, '[', nil) {
		if err := checkNames(element); err != nil {
			return err
		}
	}
	members := SplitJSON(value, '{', nil)
	names := make(map[string]bool, len(members)/2)
	for i := 0; i < len(members); i += 2 {
		name, err := decodeName(members[i])
		if err != nil {
			return err
		}
		if names[name] {
			return fmt.Errorf("an object has the name %q twice", name)
		}
		names[name] = true
		if err := checkNames(members[i+1]); err != nil {
			return err
		}
	}
	return nil
}
