package karpenter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Never is how a user writes that something shall not happen at any age.
const Never = "Never"

// NillableDuration is a duration or Never; Never is a nil Duration, and so is the zero value.
//
// It remembers how the user wrote it, because 720h and 720h0m0s are one duration but two texts, and a tool that compares
// texts would see a change that nobody made. The spelling never enters a hash. To change the value, make a
// new one with ParseNillableDuration or DurationOf instead of assigning to Duration.
type NillableDuration struct {
	*time.Duration

	// Raw is the JSON text that was decoded, or nil.
	Raw []byte `hash:"ignore"`
}

// DurationOf wraps a duration without a spelling of its own.
func DurationOf(d time.Duration) NillableDuration { return NillableDuration{Duration: &d} }

// ParseNillableDuration reads Go's duration syntax or Never and keeps the spelling.
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
		return NillableDuration{}, fmt.Errorf("keeping the spelling of duration %q: %w", text, err)
	}
	return NillableDuration{Duration: &d, Raw: raw}, nil
}

// IsNever reports that there is no duration.
func (d NillableDuration) IsNever() bool { return d.Duration == nil }

// HasElapsed reports whether the duration has passed between since and now; Never does not pass.
func (d NillableDuration) HasElapsed(since, now time.Time) bool {
	return d.Duration != nil && !now.Before(since.Add(*d.Duration))
}

// String is the text as a person would write it.
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

// UnmarshalJSON implements json.Unmarshaler. It refuses null, as upstream does: a null that quietly meant Never would
// make nodes live for ever by accident.
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

// MarshalJSON implements json.Marshaler: the text that was decoded if there was one.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if d.Raw != nil {
		return d.Raw, nil
	}
	return json.Marshal(d.String())
}
