package event

import (
	"encoding/json"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// appender is a body that writes itself, byte for byte as encoding/json would.
// It is for the bodies of which there are thousands a second.
type appender interface {
	chapter
	AppendJSON(out []byte) ([]byte, error)
	// appendKey appends the fields of Key as DeriveID does.
	appendKey(text []byte) []byte
	// about is Subject in its two parts.
	about() (what, name string)
}

// encodeBody appends a body that its consumer will take.
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
		// The other end would park it; here somebody still knows what it is.
		return nil, fault.F("encoding "+string(spec.Type), fault.Bug, "%d bytes exceed the limit of %d", size, spec.MaxData)
	}
	return out, nil
}

func appendBody(out []byte, body Body) ([]byte, error) {
	if a, ok := body.(appender); ok {
		if out == nil {
			out = make([]byte, 0, 320)
		}
		return a.AppendJSON(out)
	}
	text, err := json.Marshal(body)
	return append(out, text...), err
}

// AppendJSON writes the body as encoding/json would.
func (b InstanceGone) AppendJSON(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.always("instanceId", b.InstanceID)
	w.time("shown", b.Shown)
	return append(w.out, '}'), w.err
}

// AppendJSON writes the body as encoding/json would.
func (b NodeNoticed) AppendJSON(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.always("kind", string(b.Kind))
	w.always("instanceId", b.InstanceID)
	if !b.Deadline.IsZero() {
		w.time("deadline", b.Deadline)
	}
	w.time("noticed", b.Noticed)
	w.some("detail", b.Detail)
	if b.Offering != (Offering{}) {
		w.name("offering")
		w.out = append(w.out, '{')
		w.some("instanceType", b.Offering.InstanceType)
		w.some("zone", b.Offering.Zone)
		w.some("capacityType", b.Offering.CapacityType)
		w.out = append(w.out, '}')
	}
	return append(w.out, '}'), w.err
}

// appendKnown writes the attributes of an envelope whose data is compact.
func (e *Envelope) appendKnown(out []byte) ([]byte, error) {
	out, err := e.appendHead(out)
	return append(append(out, e.Data...), '}'), err
}

// appendHead writes all that stands before the data.
func (e *Envelope) appendHead(out []byte) ([]byte, error) {
	w := writer{out: append(out, '{')}
	w.always("specversion", e.SpecVersion)
	w.always("id", e.ID)
	w.always("source", e.Source)
	w.always("type", string(e.Type))
	w.some("subject", e.Subject)
	w.time("time", e.Time)
	w.always("cluster", e.Cluster)
	w.some("clusteruid", e.ClusterUID)
	w.some("correlation", e.Correlation)
	w.some("causation", e.Causation)
	w.time("expires", e.Expires)
	w.some("traceparent", e.Traceparent)
	w.some("dataref", e.Dataref)
	w.name("data")
	return w.out, w.err
}

// compact reports whether encoding/json would write the value as it stands.
func compact(data []byte) bool {
	s := scan{data: data}
	return s.whole() == nil && !s.loose
}

// writer appends the members of an object.
type writer struct {
	out []byte
	err error
}

// name begins a member. Names are ours, and plain.
func (w *writer) name(name string) {
	before := `,"`
	if w.out[len(w.out)-1] == '{' {
		before = `"`
	}
	w.out = append(append(append(w.out, before...), name...), `":`...)
}

// always writes a text, and some writes one that is not empty.
func (w *writer) always(name, value string) {
	w.name(name)
	w.out = appendText(w.out, value)
}

func (w *writer) some(name, value string) {
	if value != "" {
		w.always(name, value)
	}
}

// bytes writes a text that needs no escape.
func (w *writer) bytes(name string, value []byte) {
	w.name(name)
	w.out = append(append(append(w.out, '"'), value...), '"')
}

// joined writes a text in two parts, of which the first needs no escape.
func (w *writer) joined(name, first, rest string) {
	if !plain(rest) {
		w.always(name, first+rest)
		return
	}
	w.name(name)
	w.out = append(append(append(append(w.out, '"'), first...), rest...), '"')
}

func (w *writer) time(name string, value time.Time) {
	w.name(name)
	out, err := value.AppendText(append(w.out, '"'))
	if err != nil {
		w.err = err
		return
	}
	w.out = append(out, '"')
}

// appendText writes a JSON string. What needs an escape, or is not ASCII, is left to
// encoding/json.
func appendText(out []byte, text string) []byte {
	if !plain(text) {
		// A string cannot fail.
		quoted, _ := json.Marshal(text)
		return append(out, quoted...)
	}
	return append(append(append(out, '"'), text...), '"')
}

// plain reports whether a text stands for itself in JSON.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c > 0x7e || !ordinary[c] {
			return false
		}
	}
	return true
}
