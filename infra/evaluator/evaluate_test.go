package evaluator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/evaluator"
)

const (
	ownAccount   = "111122223333"
	otherAccount = "444455556666"
	ownRole      = "arn:aws:iam::111122223333:role/me"
	queue        = "arn:aws:sqs:eu-west-1:111122223333:work"
	otherQueue   = "arn:aws:sqs:eu-west-1:444455556666:work"
	rule         = "arn:aws:events:eu-west-1:111122223333:rule/spot"
	secure       = `{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":false}}}`
	toMe         = `{"Effect":"Allow","Principal":{"AWS":"` + ownRole + `"},"Action":"sqs:SendMessage","Resource":"*"}`
	toUs         = `{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:root"},"Action":["sqs:SendMessage","sts:AssumeRole"],"Resource":"*"}`
	mine         = `{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"*"}`
	forbid       = `{"Sid":"Never","Effect":"Deny","Action":"sqs:*","Resource":"*"}`
	notMe        = `{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnNotEquals":{"aws:PrincipalArn":"arn:aws:iam::111122223333:role/you"}}}`
)

func parsePolicy(t testing.TB, statements ...string) []evaluator.Policy {
	t.Helper()
	if len(statements) == 0 {
		return nil
	}
	p, err := evaluator.Parse("test", []byte(`{"Version":"2012-10-17","Statement":[`+strings.Join(statements, ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	return []evaluator.Policy{p}
}

// Policies combine as in AWS's "Policy evaluation logic", within an account and between
// two.
func TestEvaluationLogic(t *testing.T) {
	self := evaluator.Principal{Kind: evaluator.Role, Name: ownRole}
	events := evaluator.Principal{Kind: evaluator.Service, Name: "events.amazonaws.com"}
	byRule := `{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"` + rule + `"}}}`
	none := []string(nil)
	for _, test := range []struct {
		name               string
		who                evaluator.Principal
		resource           string
		identity, policies []string
		context            map[string][]string
		want               bool
	}{
		{"no statement", self, queue, none, none, nil, false},
		{"same account: allowed by its own policy", self, queue, []string{mine}, none, nil, true},
		{"same account: allowed by the queue's policy", self, queue, none, []string{toMe}, nil, true},
		{"same account: the queue's policy allows only the account", self, queue, none, []string{toUs}, nil, false},
		{"same account: the queue's policy allows the account, and its own policy allows it", self, queue, []string{mine}, []string{toUs}, nil, true},
		{"its own Deny overrides the queue's Allow", self, queue, []string{mine, forbid}, []string{toMe}, nil, false},
		{"the queue's Deny overrides its own Allow", self, queue, []string{mine}, []string{notMe}, nil, false},
		{"a Deny whose condition is not met", self, queue, []string{mine}, []string{secure}, map[string][]string{"aws:SecureTransport": {"true"}}, true},
		{"a Deny whose condition is met", self, queue, []string{mine}, []string{secure}, map[string][]string{"AWS:securetransport": {"false"}}, false},
		{"other account: its own policy is not enough", self, otherQueue, []string{mine}, none, nil, false},
		{"other account: the queue's policy is not enough", self, otherQueue, none, []string{toMe}, nil, false},
		{"other account: allowed by both policies", self, otherQueue, []string{mine}, []string{toMe}, nil, true},
		{"other account: the queue's policy allows the account, and its own policy allows it", self, otherQueue, []string{mine}, []string{toUs}, nil, true},
		{"a service allowed by the queue's policy", events, queue, none, []string{byRule}, map[string][]string{"aws:SourceArn": {rule}}, true},
		{"a service on behalf of another account", events, queue, none, []string{byRule}, map[string][]string{"aws:SourceArn": {strings.Replace(rule, ownAccount, otherAccount, 1)}}, false},
		{"a service without a source", events, queue, none, []string{byRule}, nil, false},
		{"a service is not a principal of the account", events, queue, none, []string{toMe, toUs}, nil, false},
		{"a Deny for all principals applies to services", events, queue, none, []string{byRule, notMe}, map[string][]string{"aws:SourceArn": {rule}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := evaluator.Policies{Identity: parsePolicy(t, test.identity...), Resource: parsePolicy(t, test.policies...)}.Evaluate(
				evaluator.Request{Principal: test.who, Action: "sqs:SendMessage", Resource: test.resource, Context: test.context})
			if err != nil || got.Allowed != test.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Assuming a role requires its trust policy: an identity policy alone is never enough.
func TestTrustPolicies(t *testing.T) {
	own := `{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*"}`
	web := `{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::111122223333:oidc-provider/issuer"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{"issuer:sub":"system:serviceaccount:joist:joist-watcher","issuer:aud":"sts.amazonaws.com"}}}`
	other := "arn:aws:iam::111122223333:role/other"
	for _, test := range []struct {
		name            string
		who             evaluator.Principal
		action          string
		identity, trust []string
		context         map[string][]string
		want            bool
	}{
		{"without trust", evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, "sts:AssumeRole", []string{own}, []string{web}, nil, false},
		{"trust in the account, and its own policy", evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, "sts:AssumeRole", []string{own}, []string{toUs}, nil, true},
		{"trust in the account only", evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, "sts:AssumeRole", nil, []string{toUs}, nil, false},
		{"web identity of the service account", evaluator.Principal{Kind: evaluator.Federated, Name: "arn:aws:iam::111122223333:oidc-provider/issuer"}, "sts:AssumeRoleWithWebIdentity", nil, []string{web},
			map[string][]string{"issuer:sub": {"system:serviceaccount:joist:joist-watcher"}, "issuer:aud": {"sts.amazonaws.com"}}, true},
		{"another's", evaluator.Principal{Kind: evaluator.Federated, Name: "arn:aws:iam::111122223333:oidc-provider/issuer"}, "sts:AssumeRoleWithWebIdentity", nil, []string{web},
			map[string][]string{"issuer:sub": {"system:serviceaccount:joist:default"}, "issuer:aud": {"sts.amazonaws.com"}}, false},
		{"web identity of another provider", evaluator.Principal{Kind: evaluator.Federated, Name: "arn:aws:iam::111122223333:oidc-provider/other"}, "sts:AssumeRoleWithWebIdentity", nil, []string{web},
			map[string][]string{"issuer:sub": {"system:serviceaccount:joist:joist-watcher"}, "issuer:aud": {"sts.amazonaws.com"}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := evaluator.Policies{Identity: parsePolicy(t, test.identity...), Resource: parsePolicy(t, test.trust...)}.Evaluate(
				evaluator.Request{Principal: test.who, Action: test.action, Resource: other, Context: test.context})
			if err != nil || got.Allowed != test.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Operators treat present and missing keys as in AWS's "Condition operators" and
// "Condition operators with multiple context keys or values".
func TestConditionOperators(t *testing.T) {
	const arn = "arn:aws:iam::111122223333:role/a"
	for _, test := range []struct {
		operator, values string
		have             []string
		want             bool
	}{
		{"StringEquals", `"a"`, []string{"a"}, true},
		{"StringEquals", `"a"`, []string{"A"}, false},
		{"StringEquals", `["b","a"]`, []string{"a"}, true},
		{"StringEquals", `"a"`, nil, false},
		{"StringEquals", `"*"`, []string{"a"}, false},
		{"StringEqualsIfExists", `"a"`, nil, true},
		{"StringEqualsIfExists", `"a"`, []string{"b"}, false},
		{"StringEqualsIgnoreCase", `"a"`, []string{"A"}, true},
		{"StringNotEquals", `"a"`, []string{"b"}, true},
		{"StringNotEquals", `["a","b"]`, []string{"b"}, false},
		{"StringNotEquals", `"a"`, nil, true},
		{"StringNotEqualsIgnoreCase", `"a"`, []string{"A"}, false},
		{"StringLike", `"*"`, []string{""}, true},
		{"StringLike", `"?*"`, []string{""}, false},
		{"StringLike", `"a*c?"`, []string{"abbcd"}, true},
		{"StringLike", `"a*c?"`, []string{"abbc"}, false},
		{"StringLike", `"*"`, nil, false},
		{"StringLike", `"${*}"`, []string{"*"}, true},
		{"StringLike", `"${*}"`, []string{"a"}, false},
		{"StringNotLike", `"a*"`, []string{"ab"}, false},
		{"StringNotLike", `"a*"`, nil, true},
		{"StringLikeIfExists", `"a*"`, nil, true},
		{"ArnEquals", `"` + arn + `"`, []string{arn}, true},
		{"ArnEquals", `"arn:aws:iam::111122223333:role/*"`, []string{arn}, true},
		{"ArnLike", `"arn:aws:iam::*:role/a"`, []string{arn}, true},
		// A wildcard does not match beyond its segment of the ARN.
		{"ArnLike", `"arn:aws:iam::*"`, []string{arn}, false},
		{"ArnLike", `"arn:aws:iam:*:role/a"`, []string{arn}, false},
		{"ArnNotEquals", `"` + arn + `"`, []string{arn}, false},
		{"ArnNotEquals", `"` + arn + `"`, nil, true},
		{"ArnNotLike", `"arn:aws:iam::111122223333:role/b"`, []string{arn}, true},
		{"Bool", `"false"`, []string{"false"}, true},
		{"Bool", `false`, []string{"False"}, true},
		{"Bool", `"false"`, nil, false},
		{"BoolIfExists", `"false"`, nil, true},
		{"Null", `"true"`, nil, true},
		{"Null", `"true"`, []string{"a"}, false},
		{"Null", `false`, []string{"a"}, true},
		{"Null", `"false"`, []string{""}, false},
		{"ForAllValues:StringEquals", `["a","b"]`, []string{"a", "b"}, true},
		{"ForAllValues:StringEquals", `["a","b"]`, []string{"a", "c"}, false},
		// The empty set, and why policies add Null.
		{"ForAllValues:StringEquals", `"a"`, nil, true},
		{"ForAllValues:StringEquals", `"a"`, []string{""}, true},
		{"ForAllValues:StringNotEquals", `"a"`, []string{"b", "c"}, true},
		{"ForAllValues:StringNotEquals", `"a"`, []string{"b", "a"}, false},
		{"ForAllValues:StringLike", `["a*","b"]`, []string{"ax", "b"}, true},
		{"ForAnyValue:StringEquals", `["a","b"]`, []string{"c", "b"}, true},
		{"ForAnyValue:StringEquals", `["a","b"]`, []string{"c"}, false},
		{"ForAnyValue:StringEquals", `"a"`, nil, false},
		{"ForAnyValue:StringNotEquals", `"a"`, nil, false},
		{"ForAnyValue:StringNotEquals", `"a"`, []string{"a", "b"}, true},
		{"ForAnyValue:StringEqualsIfExists", `"a"`, nil, true},
		// Variables: AWS's example of a home folder.
		{"StringLike", `"home/${aws:PrincipalAccount}/*"`, []string{"home/" + ownAccount + "/x"}, true},
		{"StringLike", `"home/${aws:PrincipalAccount}/*"`, []string{"home/" + otherAccount + "/x"}, false},
		{"StringEquals", `"${nothing}"`, []string{""}, false},
		{"StringEquals", `"${nothing, 'x'}"`, []string{"x"}, true},
	} {
		t.Run(fmt.Sprintf("%s %s with key values %q", test.operator, test.values, test.have), func(t *testing.T) {
			c := map[string][]string{}
			if test.have != nil {
				c["The:Key"] = test.have
			}
			p := parsePolicy(t, `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"`+test.operator+`":{"the:key":`+test.values+`}}}`)
			got, err := evaluator.Policies{Identity: p}.Evaluate(evaluator.Request{
				Principal: evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, Action: "a:B", Resource: queue, Context: c})
			if err != nil || got.Allowed != test.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Actions ignore case and have wildcards; resources have wildcards; both can be negated.
func TestActionsAndResources(t *testing.T) {
	for _, test := range []struct {
		action, resource string
		want             bool
	}{
		{`"Action":"ec2:run*"`, `"Resource":"*"`, true},
		{`"Action":"EC2:RunInstance?"`, `"Resource":"*"`, true},
		{`"Action":"ec2:RunInstance"`, `"Resource":"*"`, false},
		{`"Action":"s3:*"`, `"Resource":"*"`, false},
		{`"Action":["s3:*","ec2:*"]`, `"Resource":"*"`, true},
		{`"NotAction":"s3:*"`, `"Resource":"*"`, true},
		{`"NotAction":["s3:*","ec2:*"]`, `"Resource":"*"`, false},
		{`"Action":"*"`, `"Resource":"arn:aws:ec2:*:*:instance/*"`, true},
		{`"Action":"*"`, `"Resource":"arn:aws:ec2:*:*:volume/*"`, false},
		{`"Action":"*"`, `"NotResource":"arn:aws:ec2:*:*:volume/*"`, true},
		{`"Action":"*"`, `"NotResource":"arn:aws:ec2:*:*:instance/*"`, false},
		{`"Action":"*"`, `"Resource":"arn:aws:ec2:eu-west-1:${aws:PrincipalAccount}:instance/*"`, true},
		{`"Action":"*"`, `"Resource":"arn:aws:ec2:eu-west-1:${aws:nothing}:instance/*"`, false},
		{`"Action":"*"`, `"Resource":"arn:aws:ec2:eu-west-1:111122223333:INSTANCE/*"`, false},
	} {
		p := parsePolicy(t, `{"Effect":"Allow",`+test.action+`,`+test.resource+`}`)
		got, err := evaluator.Policies{Identity: p}.Evaluate(evaluator.Request{
			Principal: evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, Action: "ec2:RunInstances", Resource: "arn:aws:ec2:eu-west-1:111122223333:instance/i-1"})
		if err != nil || got.Allowed != test.want {
			t.Errorf("%s %s: %+v, %v", test.action, test.resource, got, err)
		}
	}
}

// An unknown element is an error, never a permission.
func TestUnknownElementsAreErrors(t *testing.T) {
	for name, statement := range map[string]string{
		"an unknown operator":           `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"DateLessThan":{"aws:CurrentTime":"2026-01-01"}}}`,
		"an operator in another case":   `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"stringequals":{"a:b":"c"}}}`,
		"an unknown set operator":       `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"ForSomeValues:StringEquals":{"a:b":"c"}}}`,
		"Null with a set operator":      `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"ForAnyValue:Null":{"a:b":"true"}}}`,
		"Null with another value":       `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"Null":{"a:b":"yes"}}}`,
		"a number":                      `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"a:b":1}}}`,
		"no value":                      `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"a:b":[]}}}`,
		"an unknown element":            `{"Effect":"Allow","Action":"*","Resource":"*","Limit":1}`,
		"NotPrincipal":                  `{"Effect":"Deny","NotPrincipal":{"AWS":"*"},"Action":"*","Resource":"*"}`,
		"an unknown kind of principal":  `{"Effect":"Allow","Principal":{"CanonicalUser":"x"},"Action":"*","Resource":"*"}`,
		"a principal with a wildcard":   `{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:role/*"},"Action":"*","Resource":"*"}`,
		"a principal that is a word":    `{"Effect":"Allow","Principal":"me","Action":"*","Resource":"*"}`,
		"an empty Principal":            `{"Effect":"Allow","Principal":{},"Action":"*","Resource":"*"}`,
		"an invalid effect":             `{"Effect":"allow","Action":"*","Resource":"*"}`,
		"no action":                     `{"Effect":"Allow","Resource":"*"}`,
		"Action and NotAction":          `{"Effect":"Allow","Action":"*","NotAction":"s3:*","Resource":"*"}`,
		"an action without a service":   `{"Effect":"Allow","Action":"RunInstances","Resource":"*"}`,
		"no resource":                   `{"Effect":"Allow","Action":"*"}`,
		"a resource that is not an ARN": `{"Effect":"Allow","Action":"*","Resource":"work"}`,
		"a variable that is not closed": `{"Effect":"Allow","Action":"*","Resource":"arn:${aws:x"}`,
		"a variable without a name":     `{"Effect":"Allow","Action":"*","Resource":"arn:${}"}`,
		"a default without quotes":      `{"Effect":"Allow","Action":"*","Resource":"arn:${a:b, c}"}`,
	} {
		if _, err := evaluator.Parse(name, []byte(`{"Version":"2012-10-17","Statement":`+statement+`}`)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, document := range map[string]string{
		"an old version": `{"Version":"2008-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`,
		"no statement":   `{"Version":"2012-10-17","Statement":[]}`,
		"two documents":  `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}} {}`,
		"no JSON":        `Version: 2012`,
	} {
		if _, err := evaluator.Parse(name, []byte(document)); err == nil {
			t.Errorf("%s: Parse returned no error", name)
		}
	}
}

// A request that cannot be evaluated is an error, too.
func TestUndecidableRequestsAreErrors(t *testing.T) {
	self := evaluator.Principal{Kind: evaluator.Role, Name: ownRole}
	sets := parsePolicy(t, `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:TagKeys":"a"}}}`)
	differs := parsePolicy(t, `{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringNotEquals":{"a:b":"${a:none}"}}}`)
	for name, test := range map[string]struct {
		policies evaluator.Policies
		request  evaluator.Request
	}{
		"several values without a set operator":                {evaluator.Policies{Identity: sets}, evaluator.Request{Principal: self, Action: "a:b", Resource: queue, Context: map[string][]string{"aws:TagKeys": {"a", "b"}}}},
		"a negated comparison with a variable without a value": {evaluator.Policies{Identity: differs}, evaluator.Request{Principal: self, Action: "a:b", Resource: queue, Context: map[string][]string{"a:b": {"x"}}}},
		"a key in two spellings":                               {evaluator.Policies{}, evaluator.Request{Principal: self, Action: "a:b", Resource: queue, Context: map[string][]string{"a:B": {"x"}, "a:b": {"y"}}}},
		"a context key of the principal":                       {evaluator.Policies{}, evaluator.Request{Principal: self, Action: "a:b", Resource: queue, Context: map[string][]string{"aws:PrincipalArn": {"x"}}}},
		"a bucket without an owner":                            {evaluator.Policies{Resource: parsePolicy(t, toMe)}, evaluator.Request{Principal: self, Action: "s3:GetObject", Resource: "arn:aws:s3:::b/k"}},
		"no action":                                            {evaluator.Policies{}, evaluator.Request{Principal: self, Resource: queue}},
		"no principal":                                         {evaluator.Policies{}, evaluator.Request{Action: "a:b", Resource: queue}},
		"an unknown kind of principal":                         {evaluator.Policies{}, evaluator.Request{Principal: evaluator.Principal{Kind: "User", Name: ownRole}, Action: "a:b", Resource: queue}},
		"a resource policy as identity policy":                 {evaluator.Policies{Identity: parsePolicy(t, toMe)}, evaluator.Request{Principal: self, Action: "a:b", Resource: queue}},
		"an identity policy as resource policy":                {evaluator.Policies{Resource: parsePolicy(t, mine)}, evaluator.Request{Principal: self, Action: "a:b", Resource: queue}},
	} {
		if got, err := test.policies.Evaluate(test.request); err == nil || got.Allowed {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Principals match by account, ARN, service or provider, and not by similar names.
func TestPrincipalsMatch(t *testing.T) {
	byService := `{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*","Condition":{"Bool":{"aws:PrincipalIsAWSService":"%t"}}}`
	several := `{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"arn:aws:sqs:eu-west-1:${k:many}:work"}`
	for _, test := range []struct {
		name      string
		who       evaluator.Principal
		statement string
		want      bool
	}{
		{"a service matches the service", evaluator.Principal{Kind: evaluator.Service, Name: "events.amazonaws.com"}, fmt.Sprintf(byService, true), true},
		{"a service does not match a negated service", evaluator.Principal{Kind: evaluator.Service, Name: "events.amazonaws.com"}, fmt.Sprintf(byService, false), false},
		{"a role does not match the service", evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, fmt.Sprintf(byService, true), false},
		{"a role matches a negated service", evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, fmt.Sprintf(byService, false), true},
		{"the same name of another kind does not match", evaluator.Principal{Kind: evaluator.Federated, Name: ownRole}, toMe, false},
		{"a variable with several values does not match", evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, several, false},
	} {
		got, err := evaluator.Policies{Resource: parsePolicy(t, test.statement)}.Evaluate(evaluator.Request{
			Principal: test.who, Action: "sqs:SendMessage", Resource: queue, Context: map[string][]string{"k:many": {ownAccount, otherAccount}}})
		if err != nil || got.Allowed != test.want {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}
