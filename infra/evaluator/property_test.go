package evaluator_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/infra/evaluator"
)

// Few actions and resources, so that statements often match requests.
var (
	actions   = []string{"ec2:RunInstances", "ec2:CreateTags", "sqs:SendMessage"}
	resources = []string{queue, otherQueue, "arn:aws:ec2:eu-west-1:111122223333:instance/i-1"}
	words     = []string{"a", "b", "ab", ""}
	keys      = []string{"k:one", "k:two"}
	names     = []string{"StringEquals", "StringNotEquals", "StringLike", "StringNotLike", "StringEqualsIfExists", "StringNotLikeIfExists", "Bool"}
)

type object = map[string]any

func drawStatement(t *rapid.T, effect string, ofResource bool) object {
	s := object{"Effect": effect}
	s[rapid.SampledFrom([]string{"Action", "NotAction"}).Draw(t, "which actions")] = rapid.SampledFrom(append([]string{"*", "ec2:*", "*:*Tags"}, actions...)).Draw(t, "action")
	s[rapid.SampledFrom([]string{"Resource", "NotResource"}).Draw(t, "which resources")] = rapid.SampledFrom(append([]string{"*", "arn:aws:sqs:*"}, resources...)).Draw(t, "resource")
	if ofResource {
		s["Principal"] = rapid.SampledFrom([]any{"*", object{"AWS": ownRole}, object{"AWS": ownAccount}, object{"AWS": otherAccount}, object{"Service": "events.amazonaws.com"}}).Draw(t, "principal")
	}
	if rapid.Bool().Draw(t, "conditional") {
		s["Condition"] = drawCondition(t)
	}
	return s
}

func drawCondition(t *rapid.T) object {
	c := object{}
	for range rapid.IntRange(1, 2).Draw(t, "operators") {
		set := rapid.SampledFrom([]string{"ForAllValues:", "ForAnyValue:"}).Draw(t, "set")
		operator := rapid.SampledFrom(names).Draw(t, "operator")
		c[set+operator] = object{rapid.SampledFrom(keys).Draw(t, "key"): rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b*", "?", "*"}), 1, 2).Draw(t, "values")}
	}
	if rapid.Bool().Draw(t, "null") {
		c["Null"] = object{rapid.SampledFrom(keys).Draw(t, "key"): rapid.Bool().Draw(t, "is null")}
	}
	return c
}

func parseDocument(t *rapid.T, statements []object) []evaluator.Policy {
	if len(statements) == 0 {
		return nil
	}
	text, err := json.Marshal(object{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		t.Fatal(err)
	}
	p, err := evaluator.Parse("drawn", text)
	if err != nil {
		t.Fatal(err)
	}
	return []evaluator.Policy{p}
}

// scenario is a random set of policies and a request.
type scenario struct {
	identity, resource []object
	request            evaluator.Request
}

func drawScenario(t *rapid.T) scenario {
	var w scenario
	effects := []string{"Allow", "Allow", "Deny"}
	for range rapid.IntRange(0, 3).Draw(t, "identity") {
		w.identity = append(w.identity, drawStatement(t, rapid.SampledFrom(effects).Draw(t, "effect"), false))
	}
	for range rapid.IntRange(0, 3).Draw(t, "resource") {
		w.resource = append(w.resource, drawStatement(t, rapid.SampledFrom(effects).Draw(t, "effect"), true))
	}
	w.request = evaluator.Request{
		Principal: rapid.SampledFrom([]evaluator.Principal{{Kind: evaluator.Role, Name: ownRole}, {Kind: evaluator.Service, Name: "events.amazonaws.com"}}).Draw(t, "who"),
		Action:    rapid.SampledFrom(actions).Draw(t, "does"), Resource: rapid.SampledFrom(resources).Draw(t, "to"), Context: map[string][]string{},
	}
	for _, key := range keys {
		if rapid.Bool().Draw(t, "has "+key) {
			w.request.Context[key] = rapid.SliceOfN(rapid.SampledFrom(words), 1, 2).Draw(t, key)
		}
	}
	return w
}

func (w scenario) evaluate(t *rapid.T) evaluator.Decision {
	d, err := evaluator.Policies{Identity: parseDocument(t, w.identity), Resource: parseDocument(t, w.resource)}.Evaluate(w.request)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// An additional Allow never removes a permission, and an additional Deny never adds one.
func TestPoliciesAddPermissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawScenario(t)
		before := w.evaluate(t)
		wider := w
		wider.identity = append(slices.Clone(w.identity), drawStatement(t, "Allow", false))
		wider.resource = append(slices.Clone(w.resource), drawStatement(t, "Allow", true))
		if before.Allowed && !wider.evaluate(t).Allowed {
			t.Fatalf("two additional Allows removed a permission: %+v", wider)
		}
		narrower := w
		narrower.identity = append(slices.Clone(w.identity), drawStatement(t, "Deny", false))
		narrower.resource = append(slices.Clone(w.resource), drawStatement(t, "Deny", true))
		if !before.Allowed && narrower.evaluate(t).Allowed {
			t.Fatalf("two additional Denies added a permission: %+v", narrower)
		}
	})
}

// The order of statements has no effect, and a Deny of everything leaves no permission.
func TestOrderAndDenyAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawScenario(t)
		turned := w
		turned.identity, turned.resource = slices.Clone(w.identity), slices.Clone(w.resource)
		slices.Reverse(turned.identity)
		slices.Reverse(turned.resource)
		if w.evaluate(t).Allowed != turned.evaluate(t).Allowed {
			t.Fatal("the order of the statements changes the decision")
		}
		shut := w
		shut.resource = append(slices.Clone(w.resource), object{"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"})
		if shut.evaluate(t).Allowed {
			t.Fatal("allowed although everything is denied")
		}
		silent := w
		silent.identity, silent.resource = withStatements("Deny", w.identity), withStatements("Deny", w.resource)
		if silent.evaluate(t).Allowed {
			t.Fatal("allowed without an Allow")
		}
	})
}

func withStatements(effect string, statements []object) []object {
	return slices.DeleteFunc(slices.Clone(statements), func(s object) bool { return s["Effect"] != effect })
}

// ForAllValues with Null requires at least one value and that every value is allowed.
// ForAllValues alone is true for the empty set.
func TestForAllValuesNeedsNull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, "have")
		may := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab"}), 1, 2).Draw(t, "may")
		ask := func(condition object) bool {
			w := scenario{identity: []object{{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition}},
				request: evaluator.Request{Principal: evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, Action: "ec2:CreateTags", Resource: queue}}
			if len(have) > 0 {
				w.request.Context = map[string][]string{"aws:TagKeys": have}
			}
			return w.evaluate(t).Allowed
		}
		some := slices.ContainsFunc(have, func(s string) bool { return s != "" })
		all := !slices.ContainsFunc(have, func(s string) bool { return !slices.Contains(may, s) })
		forAll := object{"ForAllValues:StringEquals": object{"aws:TagKeys": may}}
		if got := ask(forAll); got != (all || !some) {
			t.Fatalf("ForAllValues of %q in %q: got %v", have, may, got)
		}
		withNull := maps.Clone(forAll)
		withNull["Null"] = object{"aws:TagKeys": "false"}
		if got := ask(withNull); got != (all && some) {
			t.Fatalf("ForAllValues with Null of %q in %q: got %v", have, may, got)
		}
	})
}

// Wildcards match as in a naive matcher.
func TestWildcards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*?]{0,6}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab]{0,6}`).Draw(t, "text")
		w := scenario{identity: []object{{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": object{"StringLike": object{"k:one": pattern}}}},
			request: evaluator.Request{Principal: evaluator.Principal{Kind: evaluator.Role, Name: ownRole}, Action: "ec2:CreateTags", Resource: queue, Context: map[string][]string{"k:one": {text}}}}
		if got, want := w.evaluate(t).Allowed, naiveMatch(pattern, text); got != want {
			t.Fatalf("%q like %q: got %v", text, pattern, got)
		}
	})
}

// naiveMatch matches with a table of prefixes.
func naiveMatch(pattern, text string) bool {
	reach := map[int]bool{0: true}
	for _, p := range pattern {
		next := map[int]bool{}
		for at := range reach {
			switch {
			case p == '*':
				for i := at; i <= len(text); i++ {
					next[i] = true
				}
			case at < len(text) && (p == '?' || strings.HasPrefix(text[at:], string(p))):
				next[at+1] = true
			}
		}
		reach = next
	}
	return reach[len(text)]
}
