package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// MaxEnvelope is the largest message accepted, in bytes (EventBridge's
	// limit for an entry).
	MaxEnvelope = 256 << 10
	// MaxDepth is how deep JSON may nest. The deepest body of ours has 8 levels.
	MaxDepth = 32
	// MaxTokens is how many JSON tokens a message may have; one of the largest
	// size that is made of real fields has about 20,000.
	MaxTokens = 100_000
)

// Decode reads an envelope. It is total: whatever the bytes are, the result is
// an envelope or an error of kind poison.
func Decode(data []byte) (Envelope, error) {
	if err := CheckLimits(data); err != nil {
		return Envelope{}, err
	}
	var e Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, located(data, err))
	}
	if err := e.validate(); err != nil {
		return Envelope{}, err
	}
	if err := json.Unmarshal(data, &e.extra); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, err)
	}
	for _, known := range attributes {
		delete(e.extra, known)
	}
	return e, nil
}

var attributes = []string{
	"specversion", "id", "source", "type", "subject", "time", "cluster", "clusteruid", "correlation", "causation",
	"expires", "traceparent", "dataref", "data",
}

// validate checks what every envelope must state.
func (e *Envelope) validate() error {
	spec, err := e.Type.Spec()
	if err != nil {
		return err
	}
	if e.Type == TickType && e.Expires.IsZero() {
		// The scheduler can fill in its time of day but cannot add to it.
		e.Expires = e.Time.Add(spec.TTL)
	}
	poison := func(format string, args ...any) error {
		return fault.F("checking the envelope of "+string(e.Type), fault.Poison, format, args...)
	}
	switch {
	case e.SpecVersion != SpecVersion:
		return poison("specversion is %q, not %q", e.SpecVersion, SpecVersion)
	case e.ID == "" || len(e.ID) > 128:
		return poison("id has %d characters, not 1 to 128", len(e.ID))
	case e.Source == "":
		return poison("source is missing")
	case e.Cluster == "":
		return poison("cluster is missing")
	case e.Time.IsZero():
		return poison("time is missing")
	case e.Expires.Sub(e.Time) < MinTTL:
		return poison("expires %s is less than %s after time %s", e.Expires.Format(time.RFC3339), MinTTL, e.Time.Format(time.RFC3339))
	case len(e.Data) == 0:
		return poison("data is missing")
	case len(e.Data) > spec.MaxData:
		return poison("data has %d bytes, and the type allows %d", len(e.Data), spec.MaxData)
	}
	return nil
}

// As reads the body of an envelope and validates it.
func As[T Body](e Envelope) (T, error) {
	var body T
	if want := body.EventType(); want != e.Type {
		return body, fault.F("reading a body", fault.Bug, "the envelope is a %s, not a %s", e.Type, want)
	}
	if err := json.Unmarshal(e.Data, &body); err != nil {
		return body, fault.E("decoding the data of "+string(e.Type), fault.Poison, located(e.Data, err))
	}
	if err := body.Validate(); err != nil {
		return body, fault.E("checking the data of "+string(e.Type), fault.Poison, err)
	}
	return body, nil
}

// CheckLimits refuses bytes that are too large, not one JSON value, too deep or
// of too many tokens, before anything is decoded into memory.
func CheckLimits(data []byte) error {
	poison := func(format string, args ...any) error {
		return fault.F("reading a message", fault.Poison, format, args...)
	}
	if len(data) > MaxEnvelope {
		return poison("%d bytes exceed the limit of %d", len(data), MaxEnvelope)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	depth, tokens := 0, 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && tokens > 0 && depth == 0 {
			return nil
		}
		if err != nil {
			return poison("not JSON: %w", located(data, err))
		}
		if tokens++; tokens > MaxTokens {
			return poison("more than %d JSON tokens", MaxTokens)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > MaxDepth {
			return poison("JSON nests deeper than %d", MaxDepth)
		}
		if depth == 0 && decoder.More() {
			return poison("more than one JSON value (the second begins at byte %d)", decoder.InputOffset())
		}
	}
}

// located adds the place to a JSON error that has one.
func located(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d of %d: %w", syntax.Offset, len(data), err)
	case errors.As(err, &kind):
		return fmt.Errorf("byte %d, field %q: want %s, got %s", kind.Offset, kind.Field, kind.Type, kind.Value)
	default:
		return err
	}
}
