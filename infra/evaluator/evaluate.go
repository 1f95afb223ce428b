package evaluator

import (
	"errors"
	"fmt"
	"strings"
)

// Request is what is asked of AWS. One call to an API may be several requests, one
// for each resource that it touches, and then goes through only if each does.
type Request struct {
	Principal Principal
	// Action is as policies name it: ec2:RunInstances.
	Action string
	// Resource is an ARN, or "*" for an action that knows no resources.
	Resource string
	// Owner is the account whose the resource is, where the ARN does not say.
	Owner string
	// Context are the keys that AWS would know, each with its values. What it knows of
	// the principal itself is added.
	Context map[string][]string
}

// Policies are those that have a say.
type Policies struct {
	// Identity are the principal's, Resource the resource's: for sts, the role's trust.
	Identity, Resource []Policy
}

// Decision is what AWS would say.
type Decision struct {
	Allowed bool
	// By names the policy and statement that allowed, or that denied in so many words;
	// nothing where nobody allowed it.
	By string
}

// context are keys in lower case, for names of keys are compared without it.
type context map[string][]string

// Evaluate decides a request. An error says that it could not, and is to be taken
// for no answer at all.
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
		return Decision{}, fmt.Errorf("deciding %s on %s: nobody said whose the resource is", r.Action, r.Resource)
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

// combine adds up what was allowed.
func (r Request) combine(identity, resource matches, owner string) Decision {
	foreign := r.Principal.Kind == Role && owner != "" && owner != r.Principal.accountID()
	trust := strings.HasPrefix(strings.ToLower(r.Action), "sts:")
	switch {
	case r.Principal.Kind != Role, trust:
		// Services and those from outside have no identity policy; and nobody takes a role
		// that does not trust them. What trusts a whole account trusts its policies.
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

// matches is what policies of one kind say.
type matches struct {
	// denied, allowed and directly name the statement that does so. directly is for a
	// resource's policy that means the principal itself.
	denied, allowed, allowedDirectly string
}

// matchStatements asks every statement. One that cannot be judged is an error, also beside
// others that can.
func (r Request) matchStatements(policies []Policy, c context, ofResource bool) (matches, error) {
	var v matches
	for _, p := range policies {
		for i, s := range p.statements {
			name := fmt.Sprintf("%s/%s", p.Name, s.sid)
			if s.sid == "" {
				name = fmt.Sprintf("%s/%d", p.Name, i+1)
			}
			if ofResource == (len(s.principals) == 0) {
				return v, fmt.Errorf("judging by %s: a resource's policy names principals, and an identity's none", name)
			}
			about, directly := s.namesPrincipal(r.Principal)
			if ofResource && !about {
				continue
			}
			applies, err := s.isAbout(r, c)
			if err != nil {
				return v, fmt.Errorf("judging %s by %s: %w", r.Action, name, err)
			}
			if applies {
				v.record(name, s.deny, directly)
			}
		}
	}
	return v, nil
}

// record keeps the first statement of each kind.
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

// isAbout reports whether the statement is about the request: all of its elements
// must be, and all of its conditions hold.
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

// buildContext adds what AWS knows of the principal.
func (r Request) buildContext() (context, error) {
	if r.Action == "" || r.Resource == "" || r.Principal.Name == "" {
		return nil, errors.New("a request has an action, a resource and a principal")
	}
	c := context{}
	for key, values := range r.Context {
		low := strings.ToLower(key)
		if _, twice := c[low]; twice {
			return nil, fmt.Errorf("the key %s is there twice, in letters of different case", key)
		}
		c[low] = values
	}
	add := func(key string, value string) error {
		if _, given := c[key]; given {
			return fmt.Errorf("the key %s follows from the principal", key)
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
		return nil, fmt.Errorf("a principal of kind %q is not known here", r.Principal.Kind)
	}
	for key, value := range known {
		if err := add(key, value); err != nil {
			return nil, err
		}
	}
	return c, nil
}
