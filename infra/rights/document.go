package rights

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Document is a policy.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement is one of a policy. Principal is empty in what is attached to a role.
type Statement struct {
	Sid       string
	Effect    string
	Principal Principal `json:",omitempty"`
	Action    []string
	Resource  []string  `json:",omitempty"`
	Condition Condition `json:",omitempty"`
}

// Principal is by kind: AWS, Service or Federated.
type Principal map[string][]string

// Condition is by operator and key.
type Condition map[string]map[string][]string

// anyPrincipal is who a denial is about.
var anyPrincipal = Principal{"AWS": {"*"}}

func newDocument(statements ...Statement) Document {
	return Document{Version: "2012-10-17", Statement: statements}
}

// allow is a statement of a role's own policy.
func allow(sid string, actions, resources []string, conditions ...Condition) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources, Condition: allOf(conditions...)}
}

func deny(sid string, actions, resources []string, conditions ...Condition) Statement {
	return Statement{Sid: sid, Effect: "Deny", Principal: anyPrincipal, Action: actions, Resource: resources, Condition: allOf(conditions...)}
}

// newCondition is one operator on one key.
func newCondition(operator, key string, values ...string) Condition {
	return Condition{operator: {key: values}}
}

// allOf is one condition of several; all of them must hold.
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

// ToMap is the document as the CDK's escape hatches take it.
func (d Document) ToMap() map[string]any {
	var out map[string]any
	if err := json.Unmarshal(d.JSON(), &out); err != nil {
		panic("a document that was just written: " + err.Error())
	}
	return out
}

// JSON is the document as it is deployed and counted: without white space.
func (d Document) JSON() []byte {
	text, err := json.Marshal(d)
	if err != nil {
		panic("strings and maps of them: " + err.Error())
	}
	return text
}

// Actions are what the document allows, sorted, each once.
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

// readVerbs begin the names of actions that change nothing.
var readVerbs = []string{"Get", "List", "Describe", "Head", "Query", "Filter", "Simulate"}

// Writes are those of Actions that may change something. Receiving a message counts
// as a read, as AWS counts it.
func (d Document) Writes() []string {
	return slices.DeleteFunc(d.Actions(), func(action string) bool {
		_, name, _ := strings.Cut(action, ":")
		return name == "ReceiveMessage" || slices.ContainsFunc(readVerbs, func(verb string) bool { return strings.HasPrefix(name, verb) })
	})
}
