package notice

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// collectFields sets values to the values of the known names. The error is fault.Poison if an
// object has a known name twice: AWS does not do that, and decoders differ in which one they use.
func collectFields(values [][]byte, known []string, members []event.Member) error {
	for i := range members {
		at := fieldIndex(known, members[i].Name)
		if at < 0 {
			continue
		}
		if values[at] != nil {
			return fault.F("reading an event", fault.Poison, "an object has the field %s twice", known[at])
		}
		values[at] = members[i].Value
	}
	return nil
}

// fieldIndex returns the index of a name among the known ones, in any case, or -1.
func fieldIndex(known []string, written []byte) int {
	for i, name := range known {
		if len(written) == len(name) && (string(written) == name || equalFold(written, name)) {
			return i
		}
	}
	return -1
}

// equalFold compares names of equal length without regard to the case of ASCII characters.
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

// stringValue returns the content of a JSON string, or nil for another value. Without escapes it
// is a part of the message.
func stringValue(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var unescaped string
	// This cannot fail: the message was validated before.
	_ = json.Unmarshal(value, &unescaped)
	return []byte(unescaped)
}

// maxTextBytes limits foreign text in errors and details.
const maxTextBytes = 128

// truncateText cuts a text after at most maxTextBytes bytes, at the start of a character.
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
