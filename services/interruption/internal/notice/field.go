package notice

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// fill puts the values of the known names at their places. AWS does not write a
// known name twice, and which of the two would count is a matter of taste.
func fill(values [][]byte, known []string, members []event.Member) error {
	for _, m := range members {
		for i, name := range known {
			if !alike(m.Name, name) {
				continue
			}
			if values[i] != nil {
				return fault.F("reading an event", fault.Poison, "%s stands twice in one object", name)
			}
			values[i] = m.Value
		}
	}
	return nil
}

// alike compares names without regard to the case of ASCII letters.
func alike(written []byte, name string) bool {
	if len(written) != len(name) {
		return false
	}
	for i, c := range written {
		if lower(c) != lower(name[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// text is what a JSON string says, or nothing for a value that is none. It is a
// part of the message where that has no escapes.
func text(value []byte) []byte {
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

// shortMax bounds foreign text in errors and details, in bytes.
const shortMax = 128

func short(text string) string {
	if len(text) <= shortMax {
		return text
	}
	cut := shortMax
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
