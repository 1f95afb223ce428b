package karpenter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Never is the spelling of a duration that never elapses.
const Never = "Never"

// NillableDuration is a duration or Never, which is a nil Duration and the zero value.
//
// It keeps the user's spelling, because 720h and 720h0m0s are the same duration, and a tool that compares texts would
// report a change. The spelling is not hashed. To change the value, create a new one with ParseNillableDuration or
// DurationOf; do not assign to Duration.
type NillableDuration struct {
	*time.Duration

	// Raw is the JSON text that was decoded, or nil.
	Raw []byte `hash:"ignore"`
}

// DurationOf wraps a duration without a spelling.
func DurationOf(d time.Duration) NillableDuration { return NillableDuration{Duration: &d} }

// ParseNillableDuration parses a Go duration or Never and keeps the spelling.
func ParseNillableDuration(text string) (NillableDuration, error) {
	if text == Never {
		return NillableDuration{}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("reading duration %q (write for example 30s, 12h or %s): %w", text, Never, err)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("recording the text of duration %q: %w", text, err)
	}
	return NillableDuration{Duration: &d, Raw: raw}, nil
}

// IsNever reports whether the duration is Never.
func (d NillableDuration) IsNever() bool { return d.Duration == nil }

// HasElapsed reports whether the duration has passed between since and now; Never does not.
func (d NillableDuration) HasElapsed(since, now time.Time) bool {
	return d.Duration != nil && !now.Before(since.Add(*d.Duration))
}

// String returns the user's spelling, or by default Go's.
func (d NillableDuration) String() string {
	if d.Raw != nil {
		var text string
		if json.Unmarshal(d.Raw, &text) == nil {
			return text
		}
	}
	if d.Duration != nil {
		return d.Duration.String()
	}
	return Never
}

// UnmarshalJSON implements json.Unmarshaler. It rejects null, as Karpenter does: null as Never would disable expiry
// by accident.
func (d *NillableDuration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	parsed, err := ParseNillableDuration(text)
	if err != nil {
		return err
	}
	if parsed.Raw != nil {
		parsed.Raw = bytes.Clone(b)
	}
	*d = parsed
	return nil
}

// MarshalJSON implements json.Marshaler: it returns the decoded text if there is one.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if d.Raw != nil {
		return d.Raw, nil
	}
	return json.Marshal(d.String())
}
