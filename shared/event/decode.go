package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// lastYear is the last year that RFC 3339 can represent.
const lastYear = 9999

// Decode decodes an envelope. For any bytes it returns an envelope or an error of kind Poison.
func Decode(data []byte) (Envelope, error) {
	if err := CheckLimits(data); err != nil {
		return Envelope{}, err
	}
	if err := checkNames(bytes.TrimSpace(data)); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, err)
	}
	var e Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, withOffset(data, err))
	}
	if err := e.validate(); err != nil {
		return Envelope{}, err
	}
	if err := e.readExtra(data); err != nil {
		return Envelope{}, fault.E("decoding an envelope", fault.Poison, err)
	}
	if err := e.checkSpelling(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// readExtra reads the attributes that are not known. Most envelopes have none and are not decoded again.
func (e *Envelope) readExtra(data []byte) error {
	e.extra = map[string]json.RawMessage{}
	members := SplitJSON(bytes.TrimSpace(data), '{', nil)
	for i := 0; i < len(members); i += 2 {
		name, err := decodeName(members[i])
		if err != nil {
			return err
		}
		if !slices.Contains(knownAttributes, name) {
			e.extra[name] = json.RawMessage(bytes.Clone(members[i+1]))
		}
	}
	return nil
}

// checkSpelling rejects attributes that differ from a known one only in case. encoding/json accepts them, so with
// both "id" and "ID" the result would depend on their order.
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

// completeExpiry sets the expiry of a tick, which EventBridge Scheduler's template cannot compute, and limits every
// expiry to the type's TTL.
func (e *Envelope) completeExpiry(spec Spec) {
	latest := e.Time.Add(max(spec.TTL, MinTTL))
	tick := e.Type == TickType && e.Expires.IsZero()
	if tick || e.Expires.After(latest) && e.Expires.Year() <= lastYear {
		e.Expires = latest
	}
}

// LimitExpiry limits the expiry to the type's TTL after a time, because a sender's clock, and thus its time and
// expiry, may be ahead.
func (e *Envelope) LimitExpiry(latest time.Time) {
	if expires := latest.Add(max(e.Type.TTL(), MinTTL)); e.Expires.After(expires) {
		e.Expires = expires
	}
}

// validate checks the required attributes.
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

// DecodeBody decodes the body of an envelope and validates it.
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

// withOffset adds the byte offset to a JSON error that has one.
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
