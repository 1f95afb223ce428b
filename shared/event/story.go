package event

import (
	"encoding/binary"
	"time"
)

// appendStory writes what appendHead would of the envelope of a body that begins a
// story, without the envelope.
func (m Maker) appendStory(out []byte, now, expires time.Time, typ Type, body appender) ([]byte, error) {
	before := len(out)
	// What ids derive from is written where the message comes to stand, and is gone then.
	id := digest(body.appendKey(appendOrigin(out, string(typ), m.Cluster))[before:])
	kind, whose := body.story()
	story := digest(appendField(appendOrigin(out, kind, m.Cluster), whose)[before:])
	what, name := body.about()
	w := writer{out: append(out[:before], '{')}
	w.always("specversion", SpecVersion)
	w.bytes("id", id[:])
	w.joined("source", sourcePrefix, m.Service)
	w.always("type", string(typ))
	w.joined("subject", what, name)
	w.time("time", now)
	w.always("cluster", m.Cluster.Name)
	w.some("clusteruid", m.Cluster.UID)
	w.bytes("correlation", story[:])
	w.time("expires", expires)
	w.name("traceparent")
	w.out = append(append(append(append(w.out, '"'), tracePrefix...), story[:]...), '-')
	w.out = append(append(append(w.out, id[:spanDigits]...), traceSuffix...), '"')
	w.name("data")
	return w.out, w.err
}

func (b InstanceGone) appendKey(text []byte) []byte { return appendField(text, b.InstanceID) }
func (b InstanceGone) about() (what, name string)   { return aboutInstance, b.InstanceID }

// The notices about an instance and its end are one story: AWS sends each by itself, and
// whoever handles one need not have seen the others.
func (b InstanceGone) story() (kind, name string) { return instanceStory, b.InstanceID }
func (b NodeNoticed) story() (kind, name string)  { return instanceStory, b.InstanceID }

// instanceStory is what the ids of such stories derive from.
const instanceStory = "story of an instance"

func (b NodeNoticed) appendKey(text []byte) []byte {
	text = appendField(appendField(appendField(text, string(b.Kind)), b.InstanceID), b.Detail)
	return appendMoment(text, b.Noticed)
}

func (b NodeNoticed) about() (what, name string) { return aboutInstance, b.InstanceID }

// appendMoment is appendField for the text of a time.
func appendMoment(text []byte, at time.Time) []byte {
	const size = 8 // of the length, which is known afterwards
	before := len(text)
	text = at.UTC().AppendFormat(append(text, make([]byte, size)...), time.RFC3339Nano)
	binary.BigEndian.PutUint64(text[before:], uint64(len(text)-before-size))
	return text
}
