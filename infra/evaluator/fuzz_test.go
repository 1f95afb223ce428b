package evaluator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/infra/evaluator"
)

// FuzzParse: a policy is rejected with its name, or evaluated within bounded time; its decision does not depend on the
// spaces of the JSON.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../rights/testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no policies", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "ec2:RunInstances", "arn:aws:ec2:us-east-1:111122223333:instance/i-1", "aws:RequestTag/a", "b")
	}
	f.Add(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::b/${aws:PrincipalTag/a}/*"}}`, "s3:GetObject", "arn:aws:s3:::b/c/d", "aws:PrincipalTag/a", "c")
	f.Add(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","NotAction":["a:b","?:*"],"Resource":"*","Condition":{"ForAllValues:StringLike":{"k":["*a*a*a*a*a*b"]},"Bool":{"x":true}}}]}`, "a:c", "arn:aws:a:::x", "k", strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, text, action, resource, key, value string) {
		start := time.Now()
		policy, err := evaluator.Parse("the-policy", []byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), "the-policy") {
				t.Fatalf("the error does not name the policy: %v", err)
			}
			return
		}
		decide := func(policies ...evaluator.Policy) (evaluator.Decision, error) {
			return evaluator.Policies{Identity: policies}.Evaluate(evaluator.Request{
				Principal: evaluator.Principal{Name: "arn:aws:iam::111122223333:role/a"}, Action: action, Resource: resource, Owner: "111122223333", Context: map[string][]string{key: {value}}})
		}
		once, errOnce := decide(policy)
		again, errAgain := decide(respell(t, text))
		if once.Allowed != again.Allowed || (errOnce == nil) != (errAgain == nil) {
			t.Fatalf("%+v (%v), with other spaces %+v (%v)", once, errOnce, again, errAgain)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("it took %s", took)
		}
	})
}

// respell parses the policy with other spaces.
func respell(t *testing.T, text string) evaluator.Policy {
	t.Helper()
	var indented strings.Builder
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatalf("an accepted policy is not JSON: %v", err)
	}
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent(" ", "\t")
	if err := encoder.Encode(raw); err != nil {
		t.Fatal(err)
	}
	policy, err := evaluator.Parse("the-policy", []byte(indented.String()))
	if err != nil {
		t.Fatalf("with other spaces: %v", err)
	}
	return policy
}
