package event

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// fastBody is a body that encodes itself to the same bytes as encoding/json. Message types that occur thousands of
// times per second implement it.
type fastBody interface {
	tracedBody
	AppendJSON(out []byte) ([]byte, error)
	// appendKey appends the fields of Key in DeriveID's encoding.
	appendKey(text []byte) []byte
	// subjectParts returns the two parts of Subject.
	subjectParts() (what, name string)
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
	if a, ok := body.(fastBody); ok {
		if out == nil {
			out = make([]byte, 0, 320)
		}
		return a.AppendJSON(out)
	}
	text, err := json.Marshal(body)
	return append(out, text...), err
}

// AppendJSON appends the same JSON as encoding/json.
func (b InstanceGone) AppendJSON(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.addText("instanceId", b.InstanceID)
	w.addTime("shown", b.Shown)
	return append(w.out, '}'), w.err
}

// AppendJSON appends the same JSON as encoding/json.
func (b NodeNoticed) AppendJSON(out []byte) ([]byte, error) {
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

// appendHead appends everything before the data.
func (e *Envelope) appendHead(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.addText("specversion", e.SpecVersion)
	w.addText("id", e.ID)
	w.addText("source", e.Source)
	w.addText("type", string(e.Type))
	w.addNonEmpty("subject", e.Subject)
	w.addTime("time", e.Time)
	w.addText("cluster", e.Cluster)
	w.addNonEmpty("clusteruid", e.ClusterUID)
	w.addNonEmpty("correlation", e.Correlation)
	w.addNonEmpty("causation", e.Causation)
	w.addTime("expires", e.Expires)
	w.addNonEmpty("traceparent", e.Traceparent)
	w.addNonEmpty("dataref", e.Dataref)
	w.beginMember("data")
	return w.out, w.err
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

// addRaw appends a string member that needs no escaping.
func (w *writer) addRaw(name string, value []byte) {
	w.beginMember(name)
	w.out = append(append(append(w.out, '"'), value...), '"')
}

// addJoined appends the string first+rest. Only rest may need escaping.
func (w *writer) addJoined(name, first, rest string) {
	if !isPlain(rest) {
		w.addText(name, first+rest)
		return
	}
	w.beginMember(name)
	w.out = append(append(append(append(w.out, '"'), first...), rest...), '"')
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
