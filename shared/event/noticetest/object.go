package noticetest

import (
	"encoding/json"
	"slices"
	"strings"
)

// member is a name and the JSON text of its value.
type member struct{ name, value string }

// named is a text and its name.
type named struct{ name, text string }

// object is a JSON object whose members keep their order and may repeat.
type object []member

// text returns the JSON of the object.
func (o object) text() []byte {
	parts := make([]string, len(o))
	for i, m := range o {
		parts[i] = quote(m.name) + ":" + m.value
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

// quote returns a JSON string.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("noticetest: a text that is no JSON: " + err.Error()) // Unreachable: any string can be marshalled.
	}
	return string(text)
}

// list returns a JSON array.
func list(values ...string) string { return "[" + strings.Join(values, ",") + "]" }

// quoted returns a JSON array of strings.
func quoted(texts ...string) string {
	values := make([]string, len(texts))
	for i, t := range texts {
		values[i] = quote(t)
	}
	return list(values...)
}

// with returns the object with another value of an existing member.
func (o object) with(name, value string) object {
	out := slices.Clone(o)
	out[o.find(name)].value = value
	return out
}

// plus returns the object with one more member at the end.
func (o object) plus(name, value string) object {
	return append(slices.Clone(o), member{name, value})
}

// without returns the object without a member.
func (o object) without(name string) object {
	i := o.find(name)
	return slices.Delete(slices.Clone(o), i, i+1)
}

// twice returns the object with a repeated member.
func (o object) twice(name string) object {
	i := o.find(name)
	return slices.Insert(slices.Clone(o), i, o[i])
}

// called returns the object with a renamed member.
func (o object) called(name, other string) object {
	out := slices.Clone(o)
	out[o.find(name)].name = other
	return out
}

func (o object) find(name string) int {
	i := slices.IndexFunc(o, func(m member) bool { return m.name == name })
	if i < 0 {
		panic("noticetest: the event has no " + name)
	}
	return i
}
