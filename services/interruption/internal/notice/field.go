package notice

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// collectFields sets values to the raw values of the known fields, if the value is a JSON object. Names match in any
// case. The error is fault.Poison if a known field occurs twice: AWS does not do that, and decoders differ in which one
// they use.
func collectFields(values [][]byte, known []string, value []byte) error {
	var buffer [24][]byte
	parts := event.SplitJSON(value, '{', buffer[:0])
	for i := 0; i < len(parts); i += 2 {
		name := stringValue(parts[i])
		at := slices.IndexFunc(known, func(k string) bool { return len(k) == len(name) && strings.EqualFold(k, string(name)) })
		if at < 0 {
			continue
		}
		if values[at] != nil {
			return fault.F("reading an event", fault.Poison, "an object has the field %s twice", known[at])
		}
		values[at] = parts[i+1]
	}
	return nil
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
func truncateText(text string) string { return fault.Truncate(text, maxTextBytes) }
