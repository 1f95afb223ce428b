package doctor

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// texts is a JSON text or list of such, as IAM's policies have them.
type texts []string

// UnmarshalJSON takes both.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// statement is what is read of a policy's statement.
type statement struct {
	Effect    string
	Principal principal
	Action    texts
	Condition map[string]map[string]texts
}

// principal is "*" or named by kinds.
type principal map[string]texts

// UnmarshalJSON takes both.
func (p *principal) UnmarshalJSON(data []byte) error {
	var all string
	if json.Unmarshal(data, &all) == nil {
		*p = principal{"*": {all}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]texts)(p))
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

// allowsAction reports whether a statement allows an action to somebody.
func (s statement) allowsAction(action string) bool {
	return s.Effect == "Allow" && slices.ContainsFunc(s.Action, func(a string) bool { return matchPattern(strings.ToLower(a), strings.ToLower(action)) })
}

// matchPattern reports whether a text fits a pattern of IAM's, whose * crosses slashes.
func matchPattern(pattern, text string) bool {
	const other = "\x00"
	ok, _ := path.Match(strings.ReplaceAll(pattern, "/", other), strings.ReplaceAll(text, "/", other))
	return ok
}

// allowsService reports whether a statement lets a service of AWS's do something. Conditions are
// taken to hold: they narrow to sources.
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

// allowsSession reports whether a trust policy lets a role take its own under the name of a
// session. Conditions on anything else are taken to hold.
func allowsSession(trust, role, session string) bool {
	list, err := parsePolicy(trust)
	return err == nil && slices.ContainsFunc(list, func(s statement) bool {
		return s.allowsAction("sts:AssumeRole") && s.namesRole(role) && s.conditionHolds(principalKey, role) && s.conditionHolds(sessionKey, session)
	})
}

// namesRole reports whether a role is the statement's principal, by itself or with all of its
// account.
func (s statement) namesRole(role string) bool {
	account := strings.Split(role+":::::", ":")[4]
	return slices.ContainsFunc(slices.Concat(s.Principal["AWS"], s.Principal["*"]), func(p string) bool {
		return p == "*" || p == role || p == account || strings.HasSuffix(p, "::"+account+":root")
	})
}

// conditionHolds reports whether the conditions on one key hold for a value.
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

// Taker is the ARN of the role that a trust policy lets take its own, where it names one by
// a condition as the stack does, or "".
func Taker(trust string) string {
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

// webIdentities is what a trust policy says of web identities.
type webIdentities struct {
	// web says that it lets one in at all.
	web bool
	// providers are the ARNs of those whom it believes, and subs the values that it wants
	// of claims that end in :sub.
	providers, subs []string
}

// webTrust reads a trust policy.
func webTrust(trust string) (webIdentities, error) {
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
