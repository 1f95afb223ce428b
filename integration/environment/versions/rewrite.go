package versions

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Fields are the fields that a version knows, by the path of their object in a form: "documents/plans.intents[]".
type Fields map[string]map[string]bool

// newerField is the field that the next version adds to every object.
const newerField = "ofTheNextVersion"

// AddUnknownFields returns the text as the next version may write it: every object has one more field. A text that is
// not of the form is returned unchanged.
func AddUnknownFields(form TextKind, text []byte) []byte {
	return rewriteForm(form, text, func(_ string, members map[string]json.RawMessage) {
		members[newerField] = json.RawMessage(`{"list":[1],"text":"unknown to this version"}`)
	})
}

// Drop returns the text without the fields that a version does not know. A form of which the version has no example
// is returned unchanged.
func (f Fields) Drop(form TextKind, text []byte) []byte {
	return rewriteForm(form, text, func(path string, members map[string]json.RawMessage) {
		known, ok := f[path]
		for name := range members {
			if ok && !known[name] {
				delete(members, name)
			}
		}
	})
}

// Today returns the fields that this version knows.
func Today() Fields {
	out := Fields{}
	for form, is := range forms {
		out.add(form, encode(example(is, string(form), map[reflect.Type]bool{}).Interface()))
	}
	return out
}

// Without returns the fields without some, such as "documents/plans.boundPerHour".
func (f Fields) Without(names ...string) Fields {
	for _, name := range names {
		at := strings.LastIndexByte(name, '.')
		delete(f[name[:at]], name[at+1:])
	}
	return f
}

// add adds the fields of an example.
func (f Fields) add(form TextKind, text []byte) {
	rewriteForm(form, text, func(path string, members map[string]json.RawMessage) {
		if f[path] == nil {
			f[path] = map[string]bool{}
		}
		for name := range members {
			f[path][name] = true
		}
	})
}

// RewriteMessage rewrites an envelope and its body with rewrite. A message that is not Joist's is returned unchanged.
func RewriteMessage(text []byte, rewrite func(TextKind, []byte) []byte) []byte {
	var head struct {
		Spec string          `json:"specversion"`
		Type event.Type      `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(text, &head) != nil || head.Spec == "" {
		return text
	}
	text = rewrite(envelope, text)
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return text
	}
	members["data"] = rewrite(Messages+TextKind(head.Type), head.Data)
	return encode(members)
}

// envelope is the form of a message without its body.
const envelope TextKind = "envelope"

// rewriteForm calls change with every object of a text that is a struct of the form's type, and encodes the text again.
func rewriteForm(form TextKind, text []byte, change func(path string, members map[string]json.RawMessage)) []byte {
	t, ok := forms[form]
	if form == envelope {
		t, ok = reflect.TypeFor[event.Envelope](), true
	}
	if !ok {
		return text
	}
	return rewriteValue(text, t, string(form), change)
}

func rewriteValue(text []byte, t reflect.Type, path string, change func(string, map[string]json.RawMessage)) []byte {
	t = elementOf(t)
	switch {
	case encodesItself(t):
	case t.Kind() == reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return text
		}
		fields := fieldsOf(t)
		for name, value := range members {
			if field, ok := fields[name]; ok {
				members[name] = rewriteValue(value, field, path+"."+name, change)
			}
		}
		change(path, members)
		return encode(members)
	case t.Kind() == reflect.Slice:
		var elements []json.RawMessage
		if json.Unmarshal(text, &elements) != nil || elements == nil {
			return text
		}
		for i := range elements {
			elements[i] = rewriteValue(elements[i], t.Elem(), path+"[]", change)
		}
		return encode(elements)
	case t.Kind() == reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return text
		}
		for name := range members {
			members[name] = rewriteValue(members[name], t.Elem(), path+"{}", change)
		}
		return encode(members)
	}
	return text
}

// encode encodes JSON that was decoded before.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // Texts that were decoded can be encoded.
	}
	return text
}
