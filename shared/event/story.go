package event

import (
	"encoding/binary"
	"time"
)

// appendTraceHead writes what appendHead would of the envelope of a body that begins a
// story, without the envelope.
func (m Maker) appendTraceHead(out []byte, now, expires time.Time, typ Type, body fastBody) ([]byte, error) {
	before := len(out)
	// What ids derive from is written where the message comes to stand, and is gone then.
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

// The notices about an instance and its end are one story: AWS sends each by itself, and
// whoever handles one need not have seen the others.
func (b InstanceGone) traceKey() (kind, name string) { return instanceTraceKind, b.InstanceID }
func (b NodeNoticed) traceKey() (kind, name string)  { return instanceTraceKind, b.InstanceID }

// instanceTraceKind is what the ids of such stories derive from.
const instanceTraceKind = "story of an instance"

func (b NodeNoticed) appendKey(text []byte) []byte {
	text = appendField(appendField(appendField(text, string(b.Kind)), b.InstanceID), b.Detail)
	return appendTimeField(text, b.Noticed)
}

func (b NodeNoticed) subjectParts() (what, name string) { return instancePrefix, b.InstanceID }

// appendTimeField is appendField for the text of a time.
func appendTimeField(text []byte, at time.Time) []byte {
	const size = 8 // of the length, which is known afterwards
	before := len(text)
	text = at.UTC().AppendFormat(append(text, make([]byte, size)...), time.RFC3339Nano)
	binary.BigEndian.PutUint64(text[before:], uint64(len(text)-before-size))
	return text
}
