package evaluator

import (
	"errors"
	"fmt"
	"strings"
)

// Request is a request to AWS. An API call may be several requests, one for each resource,
// and is allowed only if all of them are.
type Request struct {
	Principal Principal
	// Action is the name in policies, such as ec2:RunInstances.
	Action string
	// Resource is an ARN, or "*" for an action without resources.
	Resource string
	// Owner is the account of the resource, if its ARN has none.
	Owner string
	// Context has the condition keys of the request. The keys of the principal are added.
	Context map[string][]string
}

// Policies are the policies that apply to a request.
type Policies struct {
	// Identity are the principal's policies, Resource those of the resource, or the trust
	// policy of a role.
	Identity, Resource []Policy
}

// Decision is the result of an evaluation.
type Decision struct {
	Allowed bool
	// By names the policy and statement that allowed or explicitly denied the request; empty
	// for an implicit denial.
	By string
}

// context has the condition keys in lower case, because IAM compares them without case.
type context map[string][]string

// Evaluate evaluates a request. On an error there is no decision.
func (p Policies) Evaluate(r Request) (Decision, error) {
	c, err := r.buildContext()
	if err != nil {
		return Decision{}, fmt.Errorf("reading the context of %s: %w", r.Action, err)
	}
	owner := r.Owner
	if owner == "" {
		owner = accountOfARN(r.Resource)
	}
	if owner == "" && len(p.Resource) > 0 {
		return Decision{}, fmt.Errorf("deciding %s on %s: the account of the resource is unknown (set Owner)", r.Action, r.Resource)
	}
	identity, err := r.matchStatements(p.Identity, c, false)
	if err != nil {
		return Decision{}, err
	}
	resource, err := r.matchStatements(p.Resource, c, true)
	if err != nil {
		return Decision{}, err
	}
	// An explicit deny in any policy overrides every allow.
	for _, v := range []matches{identity, resource} {
		if v.denied != "" {
			return Decision{By: v.denied}, nil
		}
	}
	return r.combine(identity, resource, owner), nil
}

// combine returns the decision for requests without an explicit denial.
func (r Request) combine(identity, resource matches, owner string) Decision {
	foreign := r.Principal.Kind == Role && owner != "" && owner != r.Principal.accountID()
	trust := strings.HasPrefix(strings.ToLower(r.Action), "sts:")
	switch {
	case r.Principal.Kind != Role, trust:
		// Services and federated users have no identity policy, and assuming a role requires
		// its trust policy. A role that trusts an account relies on the account's policies.
		if resource.allowedDirectly != "" {
			return Decision{true, resource.allowedDirectly}
		}
		if resource.allowed != "" && identity.allowed != "" {
			return Decision{true, resource.allowed}
		}
		return Decision{}
	case foreign:
		// Across accounts both sides must agree.
		if identity.allowed != "" && resource.allowed != "" {
			return Decision{true, identity.allowed + " and " + resource.allowed}
		}
		return Decision{}
	case identity.allowed != "":
		return Decision{true, identity.allowed}
	case resource.allowedDirectly != "":
		return Decision{true, resource.allowedDirectly}
	}
	return Decision{}
}

// matches are the matching statements of one kind of policies.
type matches struct {
	// denied, allowed and allowedDirectly name the first statement of each kind.
	// allowedDirectly is for a statement of a resource policy that names the principal
	// itself.
	denied, allowed, allowedDirectly string
}

// matchStatements evaluates every statement. It fails if any of them cannot be evaluated.
func (r Request) matchStatements(policies []Policy, c context, ofResource bool) (matches, error) {
	var v matches
	for _, p := range policies {
		for i, s := range p.statements {
			name := fmt.Sprintf("%s/%s", p.Name, s.sid)
			if s.sid == "" {
				name = fmt.Sprintf("%s/%d", p.Name, i+1)
			}
			if ofResource == (len(s.principals) == 0) {
				return v, fmt.Errorf("evaluating %s: a resource policy must name principals, and an identity policy must not", name)
			}
			about, directly := s.namesPrincipal(r.Principal)
			if ofResource && !about {
				continue
			}
			applies, err := s.isAbout(r, c)
			if err != nil {
				return v, fmt.Errorf("evaluating %s by %s: %w", r.Action, name, err)
			}
			if applies {
				v.record(name, s.deny, directly)
			}
		}
	}
	return v, nil
}

// record records the first statement of each kind.
func (v *matches) record(name string, deny, directly bool) {
	first := func(s *string) {
		if *s == "" {
			*s = name
		}
	}
	if deny {
		first(&v.denied)
		return
	}
	first(&v.allowed)
	if directly {
		first(&v.allowedDirectly)
	}
}

// isAbout reports whether the statement's action, resource and conditions match the request.
func (s statement) isAbout(r Request, c context) (bool, error) {
	if !s.actions.covers(strings.ToLower(r.Action), c) || !s.resources.covers(r.Resource, c) {
		return false, nil
	}
	met := true
	for _, condition := range s.conditions {
		holds, err := condition.isMet(c)
		if err != nil {
			return false, err
		}
		met = met && holds
	}
	return met, nil
}

// buildContext returns the condition keys with those of the principal.
func (r Request) buildContext() (context, error) {
	if r.Action == "" || r.Resource == "" || r.Principal.Name == "" {
		return nil, errors.New("a request requires an action, a resource and a principal")
	}
	c := context{}
	for key, values := range r.Context {
		low := strings.ToLower(key)
		if _, twice := c[low]; twice {
			return nil, fmt.Errorf("the key %s occurs twice, in different case", key)
		}
		c[low] = values
	}
	add := func(key string, value string) error {
		if _, given := c[key]; given {
			return fmt.Errorf("the key %s is derived from the principal", key)
		}
		c[key] = []string{value}
		return nil
	}
	known := map[string]string{"aws:principalisawsservice": "false"}
	switch r.Principal.Kind {
	case Role:
		known["aws:principalarn"], known["aws:principalaccount"] = r.Principal.Name, r.Principal.accountID()
	case Service:
		known["aws:principalisawsservice"], known["aws:principalservicename"] = "true", r.Principal.Name
	case Federated:
	default:
		return nil, fmt.Errorf("the principal kind %q is not supported", r.Principal.Kind)
	}
	for key, value := range known {
		if err := add(key, value); err != nil {
			return nil, err
		}
	}
	return c, nil
}
