package rights

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Document is a policy document.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement is a statement of a policy. Principal is empty in identity policies.
type Statement struct {
	Sid       string
	Effect    string
	Principal Principal `json:",omitempty"`
	Action    []string
	Resource  []string  `json:",omitempty"`
	Condition Condition `json:",omitempty"`
}

// Principal has the principals by kind: AWS, Service or Federated.
type Principal map[string][]string

// Condition has the values by operator and key.
type Condition map[string]map[string][]string

// anyPrincipal is the principal of denials.
var anyPrincipal = Principal{"AWS": {"*"}}

func newDocument(statements ...Statement) Document {
	return Document{Version: "2012-10-17", Statement: statements}
}

// allow returns an allowing statement of an identity policy.
func allow(sid string, actions, resources []string, conditions ...Condition) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources, Condition: allOf(conditions...)}
}

func deny(sid string, actions, resources []string, conditions ...Condition) Statement {
	return Statement{Sid: sid, Effect: "Deny", Principal: anyPrincipal, Action: actions, Resource: resources, Condition: allOf(conditions...)}
}

// newCondition returns a condition of one operator on one key.
func newCondition(operator, key string, values ...string) Condition {
	return Condition{operator: {key: values}}
}

// allOf returns the conjunction of the conditions.
func allOf(conditions ...Condition) Condition {
	out := Condition{}
	for _, c := range conditions {
		for operator, keys := range c {
			if out[operator] == nil {
				out[operator] = map[string][]string{}
			}
			maps.Copy(out[operator], keys)
		}
	}
	return out
}

// ToMap returns the document as a map, as the CDK's L1 constructs take it.
func (d Document) ToMap() map[string]any {
	var out map[string]any
	if err := json.Unmarshal(d.JSON(), &out); err != nil {
		panic("a document that was just written: " + err.Error())
	}
	return out
}

// JSON returns the document without white space, as IAM counts its size.
func (d Document) JSON() []byte {
	text, err := json.Marshal(d)
	if err != nil {
		panic("strings and maps of them: " + err.Error())
	}
	return text
}

// Actions returns the allowed actions, sorted and unique.
func (d Document) Actions() []string {
	var out []string
	for _, s := range d.Statement {
		if s.Effect == "Allow" {
			out = append(out, s.Action...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readVerbs are the prefixes of actions that change nothing.
var readVerbs = []string{"Get", "List", "Describe", "Head", "Query", "Filter", "Simulate"}

// Writes returns the actions that may change something. Like AWS it counts receiving a
// message as a read.
func (d Document) Writes() []string {
	return slices.DeleteFunc(d.Actions(), func(action string) bool {
		_, name, _ := strings.Cut(action, ":")
		return name == "ReceiveMessage" || slices.ContainsFunc(readVerbs, func(verb string) bool { return strings.HasPrefix(name, verb) })
	})
}
