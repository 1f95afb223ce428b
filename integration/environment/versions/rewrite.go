package versions

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
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

// RemoveAddedFields returns the text as the next version reads it, without what AddUnknownFields added.
func RemoveAddedFields(form TextKind, text []byte) []byte {
	return rewriteForm(form, text, func(_ string, members map[string]json.RawMessage) { delete(members, newerField) })
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
		Spec string     `json:"specversion"`
		Type event.Type `json:"type"`
	}
	if json.Unmarshal(text, &head) != nil || head.Spec == "" {
		return text
	}
	return rewriteObject(rewrite(envelope, text), func(name string, value []byte) []byte {
		if name == "data" {
			return rewrite(Messages+TextKind(head.Type), value)
		}
		return value
	}, func(map[string]json.RawMessage) {})
}

// envelope is the form of a message without its body.
const envelope TextKind = "envelope"

// rewriteForm calls change with every object of a text that is a struct of the form's type, and encodes the text again.
// Fields stay in their order, so that a text without a change stays the same.
func rewriteForm(form TextKind, text []byte, change func(path string, members map[string]json.RawMessage)) []byte {
	t, ok := forms[form]
	if form == envelope {
		t, ok = reflect.TypeFor[event.Envelope](), true
	}
	if !ok || !json.Valid(text) {
		return text
	}
	return rewriteValue(text, t, string(form), change)
}

func rewriteValue(text []byte, t reflect.Type, path string, change func(string, map[string]json.RawMessage)) []byte {
	t = elementOf(t)
	if encodesItself(t) {
		return text
	}
	switch text = bytes.TrimSpace(text); t.Kind() {
	case reflect.Struct:
		fields := fieldsOf(t)
		return rewriteObject(text, func(name string, value []byte) []byte {
			if field, ok := fields[name]; ok {
				return rewriteValue(value, field, path+"."+name, change)
			}
			return value
		}, func(members map[string]json.RawMessage) { change(path, members) })
	case reflect.Map:
		return rewriteObject(text, func(_ string, value []byte) []byte {
			return rewriteValue(value, t.Elem(), path+"{}", change)
		}, func(map[string]json.RawMessage) {})
	case reflect.Slice:
		if text[0] != '[' {
			return text
		}
		var out [][]byte
		for _, element := range event.SplitJSON(text, '[', nil) {
			out = append(out, rewriteValue(element, t.Elem(), path+"[]", change))
		}
		return slices.Concat([]byte("["), bytes.Join(out, []byte(",")), []byte("]"))
	}
	return text
}

// rewriteObject rewrites the values of an object, and then adds or removes members. New members are the last ones.
func rewriteObject(text []byte, rewrite func(name string, value []byte) []byte, change func(map[string]json.RawMessage)) []byte {
	if text[0] != '{' {
		return text
	}
	var names []string
	members := map[string]json.RawMessage{}
	parts := event.SplitJSON(text, '{', nil)
	for i := 0; i < len(parts); i += 2 {
		var name string
		if json.Unmarshal(parts[i], &name) != nil {
			return text
		}
		names = append(names, name)
		members[name] = rewrite(name, parts[i+1])
	}
	change(members)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var out [][]byte
	for _, name := range names {
		if value, kept := members[name]; kept {
			out = append(out, slices.Concat(encode(name), []byte(":"), value))
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(out, []byte(",")), []byte("}"))
}

// encode encodes a value of a type that can be encoded.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
