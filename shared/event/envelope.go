package event

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// SpecVersion is the CloudEvents version that envelopes follow.
const SpecVersion = "1.0"

// Cluster says whose message it is. The UID is that of the kube-system
// namespace; services outside of the cluster may not know it, and then it is
// empty and agrees with any.
type Cluster struct {
	Name string
	UID  string
}

// Matches reports whether two statements of a cluster can be of the same one.
func (c Cluster) Matches(other Cluster) bool {
	if c.Name != other.Name {
		return false
	}
	return c.UID == "" || other.UID == "" || c.UID == other.UID
}

// Envelope is one message. The JSON names are the CloudEvents attributes;
// cluster, clusteruid, correlation, causation, expires, traceparent and dataref
// are extensions.
type Envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        Type            `json:"type"`
	Subject     string          `json:"subject,omitempty"`
	Time        time.Time       `json:"time"`
	Cluster     string          `json:"cluster"`
	ClusterUID  string          `json:"clusteruid,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Causation   string          `json:"causation,omitempty"`
	Expires     time.Time       `json:"expires"`
	Traceparent string          `json:"traceparent,omitempty"`
	Dataref     string          `json:"dataref,omitempty"`
	Data        json.RawMessage `json:"data"`

	// extra keeps attributes that this version does not know, so that passing
	// a message on does not lose them.
	extra map[string]json.RawMessage
}

// SourceCluster gives the cluster that the envelope states.
func (e Envelope) SourceCluster() Cluster { return Cluster{Name: e.Cluster, UID: e.ClusterUID} }

// HasExpired reports whether the envelope must be dropped at now.
func (e Envelope) HasExpired(now time.Time) bool { return !now.Before(e.Expires) }

// Body is the typed content of a message.
type Body interface {
	// EventType is the type under which the body travels.
	EventType() Type
	// Key lists the canonical fields from which the id is derived.
	Key() []string
	// Subject names what the message is about, for people.
	Subject() string
	// Validate reports a body that no consumer could obey.
	Validate() error
}

// documentBody is a body whose bulk lies in a document.
type documentBody interface{ Reference() Ref }

// tracedBody is a body that belongs to the story of what it is about, whoever says it and
// whatever made them look: its messages find together though no one knows of the others.
type tracedBody interface {
	// traceKey names whose story it is.
	traceKey() (kind, name string)
}

// Maker stamps envelopes for one service.
type Maker struct {
	// Service is the producer's name; the source becomes "joist/<service>".
	Service string
	Cluster Cluster
}

// New wraps body in an envelope that expires after its type's TTL. cause is
// the message that led to this one, or nil where a story begins.
func (m Maker) New(now time.Time, body Body, cause *Envelope) (Envelope, error) {
	spec, err := body.EventType().Spec()
	if err != nil {
		return Envelope{}, err
	}
	return m.NewUntil(now, now.Add(spec.TTL), body, cause)
}

// NewUntil is New with an absolute expiry. An expiry closer than MinTTL is moved
// to MinTTL: a shorter one would die of ordinary delivery delay.
func (m Maker) NewUntil(now, expires time.Time, body Body, cause *Envelope) (Envelope, error) {
	spec, err := body.EventType().Spec()
	if err != nil {
		return Envelope{}, err
	}
	data, err := encodeBody(nil, spec, body)
	if err != nil {
		return Envelope{}, err
	}
	e := m.newEnvelope(now, expires, body)
	e.Data = data
	if cause != nil {
		e.inheritTrace(*cause, body)
	}
	return e, nil
}

// AppendNew writes the message that New would make where a story begins, for who says
// thousands a second.
func (m Maker) AppendNew(out []byte, now time.Time, body Body) ([]byte, error) {
	spec, err := body.EventType().Spec()
	if err != nil {
		return nil, err
	}
	if out, err = m.appendHead(out, now, spec, body); err != nil {
		return nil, fault.E("encoding "+string(spec.Type), fault.Bug, err)
	}
	if out, err = encodeBody(out, spec, body); err != nil {
		return nil, err
	}
	return append(out, '}'), nil
}

// appendHead writes all that stands before the data of a message that begins a story.
func (m Maker) appendHead(out []byte, now time.Time, spec Spec, body Body) ([]byte, error) {
	expires := now.Add(max(spec.TTL, MinTTL))
	if a, ok := body.(fastBody); ok {
		return m.appendTraceHead(out, now.UTC(), expires.UTC(), spec.Type, a)
	}
	e := m.newEnvelope(now, expires, body)
	return e.appendHead(out)
}

// sourcePrefix stands before the service in a source.
const sourcePrefix = "joist/"

// NewHead is the envelope that New makes where no message is the cause, without its data,
// for who tells of a message rather than sends it.
func (m Maker) NewHead(now time.Time, body Body) Envelope { return m.newEnvelope(now, now, body) }

// TraceID is the correlation that Head gives, without the rest of it.
func (m Maker) TraceID(body Body) string {
	if c, ok := body.(tracedBody); ok {
		return m.traceIDOf(c)
	}
	return DeriveID(string(body.EventType()), m.Cluster, body.Key()...)
}

func (m Maker) traceIDOf(c tracedBody) string {
	kind, name := c.traceKey()
	return DeriveID(kind, m.Cluster, name)
}

// newEnvelope makes the envelope without its data.
func (m Maker) newEnvelope(now, expires time.Time, body Body) Envelope {
	if earliest := now.Add(MinTTL); expires.Before(earliest) {
		expires = earliest
	}
	e := Envelope{
		SpecVersion: SpecVersion, Source: sourcePrefix + m.Service,
		Type: body.EventType(), Subject: body.Subject(), Time: now.UTC(),
		Cluster: m.Cluster.Name, ClusterUID: m.Cluster.UID,
		Expires: expires.UTC(),
	}
	e.ID = DeriveID(string(e.Type), m.Cluster, body.Key()...)
	e.Correlation = e.ID
	if c, ok := body.(tracedBody); ok {
		e.Correlation = m.traceIDOf(c)
		e.Traceparent = e.RootTraceparent()
	}
	if r, ok := body.(documentBody); ok {
		e.Dataref = r.Reference().Key()
	}
	return e
}

// inheritTrace takes the story from the cause, unless the body has one of its own. An
// emitter that does not know the cluster's UID learns it here; the id is not changed by
// that, so that it does not depend on which message happened to be the cause.
func (e *Envelope) inheritTrace(cause Envelope, body Body) {
	e.Causation = cause.ID
	if _, own := body.(tracedBody); !own {
		e.Correlation, e.Traceparent = cause.Correlation, cause.Traceparent
	}
	if e.ClusterUID == "" {
		e.ClusterUID = cause.ClusterUID
	}
}

// RootTraceparent is the W3C context of the span that a message begins with which no message
// caused, or which belongs to another story than its cause: the trace is the story, and
// the span is derived from the id, so that the same fact said twice is the same span.
func (e Envelope) RootTraceparent() string {
	return tracePrefix + e.Correlation + "-" + e.ID[:spanDigits] + traceSuffix
}

// TraceIDOf reads the story off a W3C context of ours; false where that is none.
func TraceIDOf(traceparent string) (story string, ours bool) {
	trace, ok := strings.CutPrefix(traceparent, tracePrefix)
	if !ok || len(trace) != 2*idBytes+len("-")+spanDigits+len(traceSuffix) || trace[2*idBytes] != '-' {
		return "", false
	}
	story = trace[:2*idBytes]
	_, err := hex.DecodeString(story)
	return story, err == nil
}

// A traceparent is version 00, the trace, the span, and the flag that says that it is
// kept (https://www.w3.org/TR/trace-context/#traceparent-header).
const (
	tracePrefix = "00-"
	spanDigits  = 16
	traceSuffix = "-01"
)

// Encode writes the envelope as structured JSON, with attributes that were
// unknown on arrival after the known ones.
func (e Envelope) Encode() ([]byte, error) {
	known, err := e.encodeKnown()
	if err != nil {
		return nil, fault.E("encoding "+string(e.Type)+" "+e.ID, fault.Bug, err)
	}
	if len(e.extra) == 0 {
		return known, nil
	}
	extra, err := json.Marshal(e.extra)
	if err != nil {
		return nil, fault.E("encoding "+string(e.Type)+" "+e.ID, fault.Bug, err)
	}
	return append(append(known[:len(known)-1], ','), extra[1:]...), nil
}

// encodeKnown writes the attributes that this version knows.
func (e Envelope) encodeKnown() ([]byte, error) {
	if isCompact(e.Data) {
		return e.appendKnown(make([]byte, 0, len(e.Data)+512))
	}
	return json.Marshal(e)
}
