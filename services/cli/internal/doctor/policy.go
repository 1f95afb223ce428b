package doctor

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// stringList is a JSON string or a list of strings, as in IAM policies.
type stringList []string

// UnmarshalJSON decodes both forms.
func (t *stringList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = stringList{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// statement has the parts of a policy statement that are checked.
type statement struct {
	Effect    string
	Principal principal
	Action    stringList
	Condition map[string]map[string]stringList
}

// principal is "*", or lists of principals by type.
type principal map[string]stringList

// UnmarshalJSON decodes both forms.
func (p *principal) UnmarshalJSON(data []byte) error {
	var all string
	if json.Unmarshal(data, &all) == nil {
		*p = principal{"*": {all}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]stringList)(p))
}

func parsePolicy(policy string) ([]statement, error) {
	if policy == "" {
		return nil, nil
	}
	var document struct{ Statement json.RawMessage }
	if err := json.Unmarshal([]byte(policy), &document); err != nil {
		return nil, err
	}
	var many []statement
	if json.Unmarshal(document.Statement, &many) == nil {
		return many, nil
	}
	var one statement
	err := json.Unmarshal(document.Statement, &one)
	return []statement{one}, err
}

// allowsAction reports whether a statement allows an action to its principals.
func (s statement) allowsAction(action string) bool {
	return s.Effect == "Allow" && slices.ContainsFunc(s.Action, func(a string) bool { return matchPattern(strings.ToLower(a), strings.ToLower(action)) })
}

// matchPattern reports whether a text matches an IAM pattern, in which * matches slashes, too.
func matchPattern(pattern, text string) bool {
	const other = "\x00"
	ok, _ := path.Match(strings.ReplaceAll(pattern, "/", other), strings.ReplaceAll(text, "/", other))
	return ok
}

// allowsService reports whether a policy allows an action to an AWS service. Conditions are
// assumed to be true, because they restrict the source.
func allowsService(policy, service, action string) (bool, error) {
	list, err := parsePolicy(policy)
	return slices.ContainsFunc(list, func(s statement) bool {
		if !s.allowsAction(action) {
			return false
		}
		_, anyone := s.Principal["*"]
		return anyone || slices.Contains(s.Principal["Service"], service) || slices.Contains(s.Principal["AWS"], "*")
	}), err
}

const (
	principalKey = "aws:PrincipalArn"
	sessionKey   = "sts:RoleSessionName"
)

// allowsSession reports whether a trust policy lets a role assume the policy's role with a
// session name. Conditions on other keys are assumed to be true.
func allowsSession(trust, role, session string) bool {
	list, err := parsePolicy(trust)
	return err == nil && slices.ContainsFunc(list, func(s statement) bool {
		return s.allowsAction("sts:AssumeRole") && s.namesRole(role) && s.conditionHolds(principalKey, role) && s.conditionHolds(sessionKey, session)
	})
}

// namesRole reports whether the statement's principals include a role, directly or by its
// account.
func (s statement) namesRole(role string) bool {
	account := strings.Split(role+":::::", ":")[4]
	return slices.ContainsFunc(slices.Concat(s.Principal["AWS"], s.Principal["*"]), func(p string) bool {
		return p == "*" || p == role || p == account || strings.HasSuffix(p, "::"+account+":root")
	})
}

// conditionHolds reports whether the conditions on a key are true for a value.
func (s statement) conditionHolds(key, value string) bool {
	for operator, keys := range s.Condition {
		for name, patterns := range keys {
			fits := slices.ContainsFunc(patterns, func(p string) bool { return matchPattern(p, value) })
			if strings.EqualFold(name, key) && fits == strings.Contains(operator, "Not") {
				return false
			}
		}
	}
	return true
}

// AssumingRole returns the ARN of the role that a trust policy names in a condition, as the
// stack does, or "".
func AssumingRole(trust string) string {
	list, _ := parsePolicy(trust)
	for _, s := range list {
		for _, keys := range s.Condition {
			if named := keys[principalKey]; len(named) == 1 && s.allowsAction("sts:AssumeRole") {
				return named[0]
			}
		}
	}
	return ""
}

// webIdentities are the web identities that a trust policy trusts.
type webIdentities struct {
	// web reports that the policy trusts any web identity.
	web bool
	// providers are the ARNs of the OIDC providers, and subs the values of conditions on the
	// claim sub.
	providers, subs []string
}

// parseWebTrust returns the web identities of a trust policy.
func parseWebTrust(trust string) (webIdentities, error) {
	var out webIdentities
	list, err := parsePolicy(trust)
	for _, s := range list {
		if s.Effect != "Allow" || !slices.Contains(s.Action, "sts:AssumeRoleWithWebIdentity") {
			continue
		}
		out.web = true
		out.providers = append(out.providers, s.Principal["Federated"]...)
		for _, values := range s.Condition {
			for name, value := range values {
				if strings.HasSuffix(name, ":sub") {
					out.subs = append(out.subs, value...)
				}
			}
		}
	}
	return out, err
}
