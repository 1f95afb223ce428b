package evaluator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Policy is one policy document.
type Policy struct {
	// Name is the policy's name in errors and decisions.
	Name       string
	statements []statement
}

// statement is a compiled statement of a policy.
type statement struct {
	sid        string
	deny       bool
	principals []principal
	actions    scope
	resources  scope
	conditions []condition
}

// scope is Action or Resource, or the negation of either.
type scope struct {
	negated  bool
	patterns []pattern
}

// version is the only supported version; the older one has no variables.
const version = "2012-10-17"

type rawPolicy struct {
	Version   string
	ID        string `json:"Id"`
	Statement json.RawMessage
}

type rawStatement struct {
	Sid, Effect       string
	Principal         json.RawMessage
	Action, NotAction list
	Resource          list
	NotResource       list
	Condition         map[string]map[string]list
	NotPrincipal      json.RawMessage `json:"NotPrincipal"`
}

// list is one string or several. In conditions it may have booleans.
type list []string

func (l *list) UnmarshalJSON(data []byte) error {
	var many []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		many = []json.RawMessage{data}
	} else if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	for _, one := range many {
		var text string
		if err := json.Unmarshal(one, &text); err != nil {
			if text = string(one); text != "true" && text != "false" {
				return fmt.Errorf("%s is neither a string nor a boolean", one)
			}
		}
		*l = append(*l, text)
	}
	return nil
}

// Parse parses an identity policy or, with Principal elements, a resource policy. Errors name
// the statement.
func Parse(name string, document []byte) (Policy, error) {
	var raw rawPolicy
	if err := decodeStrict(document, &raw); err != nil {
		return Policy{}, fmt.Errorf("reading policy %s: %w", name, err)
	}
	if raw.Version != version {
		return Policy{}, fmt.Errorf("reading policy %s: unsupported Version %q (use %q)", name, raw.Version, version)
	}
	statements, err := splitStatements(raw.Statement)
	if err != nil {
		return Policy{}, fmt.Errorf("reading policy %s: %w", name, err)
	}
	p := Policy{Name: name}
	for i, s := range statements {
		compiled, err := s.compile()
		if err != nil {
			return Policy{}, fmt.Errorf("reading policy %s, statement %d (%s): %w", name, i+1, s.Sid, err)
		}
		p.statements = append(p.statements, compiled)
	}
	return p, nil
}

// decodeStrict decodes JSON and rejects unknown elements, because an ignored element could
// restrict the policy.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the document")
	}
	return nil
}

// splitStatements decodes one statement or a list.
func splitStatements(data json.RawMessage) ([]rawStatement, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	var out []rawStatement
	if err := decodeStrict(data, &out); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("it has no Statement")
	}
	return out, nil
}

func (r rawStatement) compile() (statement, error) {
	s := statement{sid: r.Sid, deny: r.Effect == "Deny"}
	if r.Effect != "Allow" && r.Effect != "Deny" {
		return s, fmt.Errorf("its Effect is %q", r.Effect)
	}
	if r.NotPrincipal != nil {
		return s, errors.New("NotPrincipal is not supported")
	}
	var err error
	if s.principals, err = parsePrincipals(r.Principal); err != nil {
		return s, err
	}
	// Actions are compared without case.
	// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_action.html
	if s.actions, err = compileScope("Action", lowerAll(r.Action), lowerAll(r.NotAction)); err != nil {
		return s, err
	}
	// A trust policy has no Resource: it is about the role that it is attached to.
	if len(r.Resource)+len(r.NotResource) == 0 && len(s.principals) > 0 {
		r.Resource = list{"*"}
	}
	if s.resources, err = compileScope("Resource", r.Resource, r.NotResource); err != nil {
		return s, err
	}
	s.conditions, err = parseConditions(r.Condition)
	return s, err
}

func lowerAll(l list) list {
	out := make(list, len(l))
	for i, s := range l {
		out[i] = strings.ToLower(s)
	}
	return out
}

// compileScope compiles an element or its negation; exactly one of them must exist.
func compileScope(name string, is, not list) (scope, error) {
	if (len(is) == 0) == (len(not) == 0) {
		return scope{}, fmt.Errorf("it must have either %s or Not%s", name, name)
	}
	s := scope{negated: len(not) > 0}
	for _, text := range slices.Concat(is, not) {
		p, err := compilePattern(text)
		if err != nil {
			return scope{}, fmt.Errorf("%s %q: %w", name, text, err)
		}
		if name == "Action" && text != "*" && !strings.Contains(text, ":") {
			return scope{}, fmt.Errorf("%s %q has no service prefix", name, text)
		}
		if name == "Resource" && text != "*" && !strings.HasPrefix(text, "arn:") {
			return scope{}, fmt.Errorf("%s %q is not an ARN", name, text)
		}
		s.patterns = append(s.patterns, p)
	}
	return s, nil
}

// covers reports whether the scope includes the text. A pattern with an unset variable
// matches nothing.
func (s scope) covers(text string, c context) bool {
	for _, p := range s.patterns {
		if filled, ok := p.fillVariables(c); ok && filled.matches(text) {
			return !s.negated
		}
	}
	return s.negated
}
