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

// Cluster identifies the cluster of a message. UID is that of the kube-system namespace. It is empty if a service
// outside the cluster does not know it, and then matches any UID.
type Cluster struct {
	Name string
	UID  string
}

// Matches reports whether both can be the same cluster.
func (c Cluster) Matches(other Cluster) bool {
	if c.Name != other.Name {
		return false
	}
	return c.UID == "" || other.UID == "" || c.UID == other.UID
}

// Envelope is one message. The JSON names are the CloudEvents attributes; cluster, clusteruid, correlation,
// causation, expires, traceparent and dataref are extensions.
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

	// extra keeps attributes that this version does not know, so that forwarding a message does not lose them.
	extra map[string]json.RawMessage
}

// SourceCluster returns the cluster of the envelope.
func (e Envelope) SourceCluster() Cluster { return Cluster{Name: e.Cluster, UID: e.ClusterUID} }

// HasExpired reports whether the envelope has expired at now and must be dropped.
func (e Envelope) HasExpired(now time.Time) bool { return !now.Before(e.Expires) }

// Body is the typed content of a message.
type Body interface {
	// EventType is the message type of the body.
	EventType() Type
	// Key returns the fields from which the id is derived.
	Key() []string
	// Subject is the subject of the message, for people.
	Subject() string
	// Validate returns an error if the body is invalid.
	Validate() error
}

// documentBody is a body that refers to a stored document.
type documentBody interface{ Reference() Ref }

// Maker creates envelopes for one service.
type Maker struct {
	// Service is the producer's name; the source becomes "joist/<service>".
	Service string
	Cluster Cluster
	// Samples reports whether the trace with an id is sampled. It decides for messages that begin a trace; others
	// inherit the decision. Nil samples every trace.
	Samples func(traceID string) bool
}

// New wraps body in an envelope that expires after its type's TTL. cause is the message that led to this one, or nil
// for the first message of a trace.
func (m Maker) New(now time.Time, body Body, cause *Envelope) (Envelope, error) {
	spec, err := body.EventType().Spec()
	if err != nil {
		return Envelope{}, err
	}
	data, err := encodeBody(nil, spec, body)
	if err != nil {
		return Envelope{}, err
	}
	e := m.newEnvelope(now, body)
	e.Data = data
	if cause != nil {
		e.inheritTrace(*cause, body)
	}
	return e, nil
}

// sourcePrefix precedes the service's name in a source.
const sourcePrefix = "joist/"

// NewHead returns the envelope that New creates without a cause, but without its data, for spans and logs about a
// message that is not sent.
func (m Maker) NewHead(now time.Time, body Body) Envelope { return m.newEnvelope(now, body) }

// newEnvelope creates the envelope without its data.
func (m Maker) newEnvelope(now time.Time, body Body) Envelope {
	e := Envelope{
		SpecVersion: SpecVersion, Source: sourcePrefix + m.Service,
		Type: body.EventType(), Subject: body.Subject(), Time: now.UTC(),
		Cluster: m.Cluster.Name, ClusterUID: m.Cluster.UID,
		Expires: now.Add(max(body.EventType().TTL(), MinTTL)).UTC(),
	}
	e.ID = DeriveID(string(e.Type), m.Cluster, body.Key()...)
	e.Correlation = e.ID
	if i, ok := body.(InstanceBody); ok {
		e.Correlation = DeriveID(instanceTraceKind, m.Cluster, i.instanceID())
		e.Traceparent = m.RootTraceparent(e)
	}
	if r, ok := body.(documentBody); ok {
		e.Dataref = r.Reference().Key()
	}
	return e
}

// inheritTrace copies the trace from the cause, unless the body has its own. It also copies the cluster's UID if the
// producer does not know it. The id does not depend on the UID of the cause, so it is the same for every cause.
func (e *Envelope) inheritTrace(cause Envelope, body Body) {
	e.Causation = cause.ID
	if _, own := body.(InstanceBody); !own {
		e.Correlation, e.Traceparent = cause.Correlation, cause.Traceparent
	}
	if e.ClusterUID == "" {
		e.ClusterUID = cause.ClusterUID
	}
}

// RootTraceparent returns the W3C trace context of a message that begins a trace, or that has another trace than its
// cause. The trace id is the correlation id and the span id is derived from the message id, so a repeated fact gives
// the same span.
func (e Envelope) RootTraceparent() string { return Maker{}.RootTraceparent(e) }

// RootTraceparent is that of the envelope, with the maker's decision whether the trace is sampled.
func (m Maker) RootTraceparent(e Envelope) string { return m.newTraceparent(e.Correlation, e.ID) }

func (m Maker) newTraceparent(trace, id string) string {
	flags := sampledFlags
	if m.Samples != nil && !m.Samples(trace) {
		flags = unsampledFlags
	}
	return tracePrefix + trace + "-" + id[:spanDigits] + flags
}

// TraceIDOf returns the trace id of a W3C trace context that Joist created; false if the format differs.
func TraceIDOf(traceparent string) (story string, ours bool) {
	trace, ok := strings.CutPrefix(traceparent, tracePrefix)
	if !ok || len(trace) != 2*idBytes+len("-")+spanDigits+len(sampledFlags) || trace[2*idBytes] != '-' {
		return "", false
	}
	story = trace[:2*idBytes]
	_, err := hex.DecodeString(story)
	return story, err == nil
}

// A traceparent is version 00, the trace id, the span id and the sampled flag
// (https://www.w3.org/TR/trace-context/#traceparent-header).
const (
	tracePrefix    = "00-"
	spanDigits     = 16
	sampledFlags   = "-01"
	unsampledFlags = "-00"
)

// Encode encodes the envelope as structured JSON, with unknown attributes after the known ones.
func (e Envelope) Encode() ([]byte, error) {
	known, err := json.Marshal(e)
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
