package evaluator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Kind is the type of a principal.
type Kind string

// The kinds of principals.
const (
	// Role is an IAM role, named by its ARN.
	Role Kind = "AWS"
	// Service is a service of AWS that acts by itself, such as events.amazonaws.com.
	Service Kind = "Service"
	// Federated is a user of an identity provider, named by the provider's ARN.
	Federated Kind = "Federated"
)

// Principal is the caller of a request.
type Principal struct {
	Kind Kind
	// Name is the role's or the provider's ARN, or the service's name.
	Name string
}

// accountID returns the account of a role.
func (p Principal) accountID() string { return accountOfARN(p.Name) }

// accountOfARN returns the account of an ARN, or "".
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
	// account is an account whose identity policies decide.
	account string
}

var (
	accountPattern = regexp.MustCompile(`^[0-9]{12}$`)
	rootPattern    = regexp.MustCompile(`^arn:[a-z-]+:iam::([0-9]{12}):root$`)
)

// parsePrincipals parses a Principal element; it returns nil if none exists.
func parsePrincipals(data json.RawMessage) ([]principal, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil
	}
	if data[0] == '"' {
		if string(data) != `"*"` {
			return nil, fmt.Errorf("the Principal %s is not supported", data)
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
			return nil, fmt.Errorf("the AWS principal %q is not supported", name)
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
		return nil, fmt.Errorf("its Principal %s is empty", data)
	}
	return out, nil
}

// namesPrincipal reports whether a statement applies to the principal, and whether directly:
// by its name or "*". A statement for the account counts only together with the account's
// identity policies.
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
