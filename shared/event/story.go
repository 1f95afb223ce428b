package event

import (
	"encoding/binary"
	"time"
)

// appendTraceHead appends the same bytes as appendHead for a fastBody without a cause, without creating the envelope.
func (m Maker) appendTraceHead(out []byte, now, expires time.Time, typ Type, body fastBody) ([]byte, error) {
	before := len(out)
	// The input of the ids is written into the same buffer and then overwritten.
	id := hashID(body.appendKey(appendIDPrefix(out, string(typ), m.Cluster))[before:])
	kind, whose := body.traceKey()
	story := hashID(appendField(appendIDPrefix(out, kind, m.Cluster), whose)[before:])
	what, name := body.subjectParts()
	w := writer{out: append(out[:before], '{')}
	w.addText("specversion", SpecVersion)
	w.addRaw("id", id[:])
	w.addJoined("source", sourcePrefix, m.Service)
	w.addText("type", string(typ))
	w.addJoined("subject", what, name)
	w.addTime("time", now)
	w.addText("cluster", m.Cluster.Name)
	w.addNonEmpty("clusteruid", m.Cluster.UID)
	w.addRaw("correlation", story[:])
	w.addTime("expires", expires)
	w.beginMember("traceparent")
	w.out = append(append(append(append(w.out, '"'), tracePrefix...), story[:]...), '-')
	w.out = append(append(append(w.out, id[:spanDigits]...), traceSuffix...), '"')
	w.beginMember("data")
	return w.out, w.err
}

func (b InstanceGone) appendKey(text []byte) []byte      { return appendField(text, b.InstanceID) }
func (b InstanceGone) subjectParts() (what, name string) { return instancePrefix, b.InstanceID }

// All notices about an instance and its termination share a trace: AWS sends each separately, and a handler of one
// may not have received the others.
func (b InstanceGone) traceKey() (kind, name string) { return instanceTraceKind, b.InstanceID }
func (b NodeNoticed) traceKey() (kind, name string)  { return instanceTraceKind, b.InstanceID }

// instanceTraceKind is the kind from which the ids of these traces derive.
const instanceTraceKind = "story of an instance"

func (b NodeNoticed) appendKey(text []byte) []byte {
	text = appendField(appendField(appendField(text, string(b.Kind)), b.InstanceID), b.Detail)
	return appendTimeField(text, b.Noticed)
}

func (b NodeNoticed) subjectParts() (what, name string) { return instancePrefix, b.InstanceID }

// appendTimeField is appendField for a formatted time.
func appendTimeField(text []byte, at time.Time) []byte {
	const size = 8 // bytes of the length, which is written afterwards
	before := len(text)
	text = at.UTC().AppendFormat(append(text, make([]byte, size)...), time.RFC3339Nano)
	binary.BigEndian.PutUint64(text[before:], uint64(len(text)-before-size))
	return text
}
