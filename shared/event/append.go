package event

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// InstanceBody is a body about an instance, NodeNoticed or InstanceGone. Interruption sends thousands per second, so it
// encodes itself, to the same bytes as encoding/json. All messages about an instance share a trace: AWS sends each
// notice separately, and a handler of one may not have received the others.
type InstanceBody interface {
	Body
	instanceID() string
	appendJSON(out []byte) ([]byte, error)
}

func (b InstanceGone) instanceID() string { return b.InstanceID }
func (b NodeNoticed) instanceID() string  { return b.InstanceID }

// instanceTraceKind is the kind from which the trace ids of an InstanceBody derive.
const instanceTraceKind = "story of an instance"

// AppendNew appends the encoded message that New would create without a cause, and also returns its correlation id.
func (m Maker) AppendNew(out []byte, now time.Time, body InstanceBody) (appended []byte, correlation string, err error) {
	spec, err := body.EventType().Spec()
	if err != nil {
		return nil, "", err
	}
	id := DeriveID(string(spec.Type), m.Cluster, body.Key()...)
	correlation = DeriveID(instanceTraceKind, m.Cluster, body.instanceID())
	w := writer{out: append(out, '{')}
	w.addText("specversion", SpecVersion)
	w.addText("id", id)
	w.addText("source", sourcePrefix+m.Service)
	w.addText("type", string(spec.Type))
	w.addText("subject", body.Subject())
	w.addTime("time", now.UTC())
	w.addText("cluster", m.Cluster.Name)
	w.addNonEmpty("clusteruid", m.Cluster.UID)
	w.addText("correlation", correlation)
	w.addTime("expires", now.Add(max(spec.TTL, MinTTL)).UTC())
	w.addText("traceparent", m.newTraceparent(correlation, id))
	w.beginMember("data")
	if w.err != nil {
		return nil, "", fault.E("encoding "+string(spec.Type), fault.Bug, w.err)
	}
	if out, err = encodeBody(w.out, spec, body); err != nil {
		return nil, "", err
	}
	return append(out, '}'), correlation, nil
}

// encodeBody validates a body and appends its JSON.
func encodeBody(out []byte, spec Spec, body Body) ([]byte, error) {
	if err := body.Validate(); err != nil {
		return nil, fault.E("making "+string(spec.Type), fault.Bug, err)
	}
	before := len(out)
	out, err := appendBody(out, body)
	if err != nil {
		return nil, fault.E("encoding "+string(spec.Type), fault.Bug, err)
	}
	if size := len(out) - before; size > spec.MaxData {
		// The consumer would move it to the DLQ; fail at the producer instead.
		return nil, fault.F("encoding "+string(spec.Type), fault.Bug, "%d bytes exceed the limit of %d", size, spec.MaxData)
	}
	return out, nil
}

func appendBody(out []byte, body Body) ([]byte, error) {
	if i, ok := body.(InstanceBody); ok {
		return i.appendJSON(out)
	}
	text, err := json.Marshal(body)
	return append(out, text...), err
}

func (b InstanceGone) appendJSON(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.addText("instanceId", b.InstanceID)
	w.addTime("shown", b.Shown)
	return append(w.out, '}'), w.err
}

func (b NodeNoticed) appendJSON(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.addText("kind", string(b.Kind))
	w.addText("instanceId", b.InstanceID)
	if !b.Deadline.IsZero() {
		w.addTime("deadline", b.Deadline)
	}
	w.addTime("noticed", b.Noticed)
	w.addNonEmpty("detail", b.Detail)
	if b.Offering != (Offering{}) {
		w.beginMember("offering")
		w.out = append(w.out, '{')
		w.addNonEmpty("instanceType", b.Offering.InstanceType)
		w.addNonEmpty("zone", b.Offering.Zone)
		w.addNonEmpty("capacityType", b.Offering.CapacityType)
		w.out = append(w.out, '}')
	}
	return append(w.out, '}'), w.err
}

// writer appends the members of an object.
type writer struct {
	out []byte
	err error
}

// beginMember appends a member's name, which must not need escaping.
func (w *writer) beginMember(name string) {
	before := `,"`
	if w.out[len(w.out)-1] == '{' {
		before = `"`
	}
	w.out = append(append(append(w.out, before...), name...), `":`...)
}

// addText appends a string member; addNonEmpty omits an empty one.
func (w *writer) addText(name, value string) {
	w.beginMember(name)
	w.out = appendText(w.out, value)
}

func (w *writer) addNonEmpty(name, value string) {
	if value != "" {
		w.addText(name, value)
	}
}

func (w *writer) addTime(name string, value time.Time) {
	w.beginMember(name)
	out, err := value.AppendText(append(w.out, '"'))
	if err != nil {
		w.err = err
		return
	}
	w.out = append(out, '"')
}

// appendText appends a JSON string. encoding/json writes text that needs escaping or is not ASCII.
func appendText(out []byte, text string) []byte {
	if !isPlain(text) {
		// Marshalling a string cannot fail.
		quoted, _ := json.Marshal(text)
		return append(out, quoted...)
	}
	return append(append(append(out, '"'), text...), '"')
}

// isPlain reports whether a text needs no escaping in JSON.
func isPlain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}
