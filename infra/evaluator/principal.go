package evaluator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Kind is how a principal is known to AWS.
type Kind string

// The kinds of principals.
const (
	// Role is a role of IAM, by its ARN.
	Role Kind = "AWS"
	// Service is a service of AWS that acts by itself, such as events.amazonaws.com.
	Service Kind = "Service"
	// Federated is who came by an identity provider, named by the provider's ARN.
	Federated Kind = "Federated"
)

// Principal is who asks.
type Principal struct {
	Kind Kind
	// Name is the role's or the provider's ARN, or the service's name.
	Name string
}

// accountID is a role's.
func (p Principal) accountID() string { return accountOfARN(p.Name) }

// accountOfARN is the fifth part of an ARN, or nothing.
func accountOfARN(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return parts[4]
}

// principal is one value of a Principal element.
type principal struct {
	// everyone is "*", or {"AWS": "*"}, which means the same for a resource.
	everyone bool
	kind     Kind
	name     string
	// account is whose identities are trusted to say it themselves.
	account string
}

var (
	accountPattern = regexp.MustCompile(`^[0-9]{12}$`)
	rootPattern    = regexp.MustCompile(`^arn:[a-z-]+:iam::([0-9]{12}):root$`)
)

// parsePrincipals reads a Principal element; none where there is none.
func parsePrincipals(data json.RawMessage) ([]principal, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil
	}
	if data[0] == '"' {
		if string(data) != `"*"` {
			return nil, fmt.Errorf("the Principal %s is not known here", data)
		}
		return []principal{{everyone: true}}, nil
	}
	var raw struct{ AWS, Service, Federated list }
	if err := decodeStrict(data, &raw); err != nil {
		return nil, fmt.Errorf("its Principal: %w", err)
	}
	var out []principal
	for _, name := range raw.AWS {
		found := rootPattern.FindStringSubmatch(name)
		switch {
		case name == "*":
			out = append(out, principal{everyone: true})
		case accountPattern.MatchString(name):
			out = append(out, principal{account: name})
		case found != nil:
			out = append(out, principal{account: found[1]})
		case strings.ContainsAny(name, "*?$") || !strings.HasPrefix(name, "arn:"):
			return nil, fmt.Errorf("the AWS principal %q is not known here", name)
		default:
			out = append(out, principal{kind: Role, name: name})
		}
	}
	for _, name := range raw.Service {
		out = append(out, principal{kind: Service, name: name})
	}
	for _, name := range raw.Federated {
		out = append(out, principal{kind: Federated, name: name})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("its Principal %s names nobody", data)
	}
	return out, nil
}

// namesPrincipal reports whether a statement is about the principal, and whether it means that
// very one, or everyone, and not just its account: what is said to an account counts
// only with what the account itself allows.
func (s statement) namesPrincipal(p Principal) (about, directly bool) {
	for _, want := range s.principals {
		switch {
		case want.everyone, want.kind == p.Kind && want.name == p.Name:
			return true, true
		case want.account != "" && p.Kind == Role && want.account == p.accountID():
			about = true
		}
	}
	return about, false
}
