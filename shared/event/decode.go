package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	// lastYear is the last that RFC 3339 can write.
	lastYear = 9999
)

// Decode reads an envelope. It is total: whatever the bytes are, the result is
// an envelope or an error of kind poison.
func Decode(data []byte) (Envelope, error) {
	if err := CheckLimits(data); err != nil {
		return Envelope{}, err
	}
	var e Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, withOffset(data, err))
	}
	if err := e.validate(); err != nil {
		return Envelope{}, err
	}
	if err := json.Unmarshal(data, &e.extra); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, err)
	}
	for _, known := range knownAttributes {
		delete(e.extra, known)
	}
	if err := e.checkSpelling(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// checkSpelling refuses attributes that encoding/json takes for a known one and that
// are spelled otherwise: "ID" beside "id" would make it a matter of their order
// which of the two counts.
func (e *Envelope) checkSpelling() error {
	for name := range e.extra {
		for _, known := range knownAttributes {
			if strings.EqualFold(name, known) {
				return fault.F("decoding an envelope", fault.Poison, "attribute %q is to be spelled %q", name, known)
			}
		}
	}
	return nil
}

var knownAttributes = []string{
	"specversion", "id", "source", "type", "subject", "time", "cluster", "clusteruid", "correlation", "causation",
	"expires", "traceparent", "dataref", "data",
}

// completeExpiry completes a tick, whose scheduler can fill in its time of day but cannot add
// to it, and lets no message live longer than its type, whoever wrote it.
func (e *Envelope) completeExpiry(spec Spec) {
	latest := e.Time.Add(max(spec.TTL, MinTTL))
	tick := e.Type == TickType && e.Expires.IsZero()
	if tick || e.Expires.After(latest) && e.Expires.Year() <= lastYear {
		e.Expires = latest
	}
}

// LimitExpiry lets the message live no longer than its type does from a time on. Its sender may
// have written a later time than that, and with it a later expiry.
func (e *Envelope) LimitExpiry(latest time.Time) {
	if expires := latest.Add(max(e.Type.TTL(), MinTTL)); e.Expires.After(expires) {
		e.Expires = expires
	}
}

// validate checks what every envelope must state.
func (e *Envelope) validate() error {
	spec, err := e.Type.Spec()
	if err != nil {
		return err
	}
	e.completeExpiry(spec)
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
	case e.Expires.Year() > lastYear:
		return poison("expires in the year %d", e.Expires.Year())
	case e.Expires.Sub(e.Time) < MinTTL:
		return poison("expires %s is less than %s after time %s", e.Expires.Format(time.RFC3339), MinTTL, e.Time.Format(time.RFC3339))
	case len(e.Data) == 0:
		return poison("data is missing")
	case len(e.Data) > spec.MaxData:
		return poison("data has %d bytes, and the type allows %d", len(e.Data), spec.MaxData)
	}
	return nil
}

// DecodeBody reads the body of an envelope and validates it.
func DecodeBody[T Body](e Envelope) (T, error) {
	var body T
	if want := body.EventType(); want != e.Type {
		return body, fault.F("reading a body", fault.Bug, "the envelope is a %s, not a %s", e.Type, want)
	}
	if err := json.Unmarshal(e.Data, &body); err != nil {
		return body, fault.E("decoding the data of "+string(e.Type), fault.Poison, withOffset(e.Data, err))
	}
	if err := body.Validate(); err != nil {
		return body, fault.E("checking the data of "+string(e.Type), fault.Poison, err)
	}
	return body, nil
}

// withOffset adds the place to a JSON error that has one.
func withOffset(data []byte, err error) error {
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
