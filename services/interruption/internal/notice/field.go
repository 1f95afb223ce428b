package notice

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// collectFields puts the values of the known names at their places. AWS does not write a
// known name twice, and which of the two would count is a matter of taste.
func collectFields(values [][]byte, known []string, members []event.Member) error {
	for i := range members {
		at := fieldIndex(known, members[i].Name)
		if at < 0 {
			continue
		}
		if values[at] != nil {
			return fault.F("reading an event", fault.Poison, "%s stands twice in one object", known[at])
		}
		values[at] = members[i].Value
	}
	return nil
}

// fieldIndex is where a name stands among the known ones, or -1.
func fieldIndex(known []string, written []byte) int {
	for i, name := range known {
		if len(written) == len(name) && (string(written) == name || equalFold(written, name)) {
			return i
		}
	}
	return -1
}

// equalFold compares names of one length without regard to the case of ASCII letters.
func equalFold(written []byte, name string) bool {
	for i, c := range written {
		if lowerASCII(c) != lowerASCII(name[i]) {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// stringValue is what a JSON string says, or nothing for a value that is none. It is a
// part of the message where that has no escapes.
func stringValue(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var unescaped string
	// It was read before, so this cannot fail.
	_ = json.Unmarshal(value, &unescaped)
	return []byte(unescaped)
}

// maxTextBytes bounds foreign text in errors and details, in bytes.
const maxTextBytes = 128

func truncateText(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	cut := maxTextBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
