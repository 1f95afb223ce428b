package queue

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The message attributes that hold Outgoing.Source and Outgoing.Type on a queue.
const (
	SourceAttribute = "source"
	TypeAttribute   = "type"
)

// MessageAttributes returns the attributes of the message on a queue: source, type and Attributes. It omits empty
// values and replaces characters that SQS rejects, because the reason of a DLQ message may hold any text.
func (m Outgoing) MessageAttributes() map[string]string {
	out := make(map[string]string, len(m.Attributes)+2)
	maps.Copy(out, m.Attributes)
	out[SourceAttribute], out[TypeAttribute] = m.Source, m.Type
	for name, value := range out {
		if value == "" {
			delete(out, name)
			continue
		}
		out[name] = strings.Map(func(r rune) rune {
			if isLegalRune(r) {
				return r
			}
			return utf8.RuneError
		}, value)
	}
	return out
}

// Validate returns an Invalid error if the body is empty, not UTF-8, above MaxBody (for a DLQ message: above
// MaxDeadLetter with its attributes), or has characters that XML does not allow.
func (m Outgoing) Validate() error {
	refuse := func(format string, args ...any) error {
		return fault.F("checking a message of type "+m.Type, fault.Invalid, format, args...)
	}
	switch {
	case len(m.Body) == 0:
		return refuse("the body is empty")
	case m.IsDeadLetter && m.Size() > MaxDeadLetter:
		return refuse("%d bytes with attributes exceed the limit of %d", m.Size(), MaxDeadLetter)
	case !m.IsDeadLetter && len(m.Body) > MaxBody:
		return refuse("%d bytes exceed the limit of %d", len(m.Body), MaxBody)
	case !utf8.Valid(m.Body):
		return refuse("the body is not UTF-8")
	}
	for at, r := range string(m.Body) {
		if !isLegalRune(r) {
			return refuse("the character %U at byte %d is not allowed in a message", r, at)
		}
	}
	return nil
}

// IsSendableText reports whether a queue accepts the bytes unencoded, apart from their size.
func IsSendableText(body []byte) bool {
	return len(body) > 0 && utf8.Valid(body) && !strings.ContainsFunc(string(body), func(r rune) bool { return !isLegalRune(r) })
}

// isLegalRune reports whether SQS accepts the character.
func isLegalRune(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || (r >= 0x20 && r <= 0xD7FF) || (r >= 0xE000 && r <= 0xFFFD) || r >= 0x10000
}

// SplitBatches splits messages into calls of at most MaxBatch messages and maxBytes bytes with attributes. It returns
// an Invalid error for a message that no call can carry.
func SplitBatches(maxBytes int, messages ...Outgoing) ([][]Outgoing, error) {
	var out [][]Outgoing
	var batch []Outgoing
	total := 0
	for i, m := range messages {
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("message %d of %d: %w", i+1, len(messages), err)
		}
		size := m.Size()
		if size > maxBytes {
			return nil, fault.F("sending "+m.Type, fault.Invalid, "%d bytes with attributes exceed the limit of %d", size, maxBytes)
		}
		if len(batch) == MaxBatch || total+size > maxBytes {
			out, batch, total = append(out, batch), nil, 0
		}
		batch, total = append(batch, m), total+size
	}
	if len(batch) > 0 {
		out = append(out, batch)
	}
	return out, nil
}

// Size returns the bytes that count towards the limits of a call: body and attributes.
func (m Outgoing) Size() int {
	size := len(m.Body)
	for name, value := range m.MessageAttributes() {
		size += len(name) + len(value) + len("String")
	}
	return size
}
