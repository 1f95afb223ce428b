package rights_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/infra/rights"
)

// mutant is the set of deployed documents with one element removed from one statement.
type mutant struct {
	name      string
	documents map[string]rights.Document
}

// replaceStatement returns a copy of the deployed documents with one statement replaced.
func replaceStatement(all map[string]rights.Document, whose string, i int, to ...rights.Statement) map[string]rights.Document {
	out := maps.Clone(all)
	d := out[whose]
	d.Statement = slices.Replace(slices.Clone(d.Statement), i, i+1, to...)
	out[whose] = d
	return out
}

// removeAt returns the lists that lack one element, by the removed element.
func removeAt(list []string) map[string][]string {
	out := map[string][]string{}
	for i, s := range list {
		out[s] = slices.Delete(slices.Clone(list), i, i+1)
	}
	return out
}

// ours returns the names of the cluster's own documents.
func ours(all map[string]rights.Document) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return strings.Contains(name, beside) })
}

// Some call of Joist needs each allowed action and resource, so no permission is
// superfluous. Policies for people are excluded, because the list of calls does not have
// those of the commands.
func TestEveryRightIsNeeded(t *testing.T) {
	all := deployed(t, currentSystem)
	calls := legitimate()
	for _, whose := range ours(all) {
		if strings.HasSuffix(whose, "operator") || strings.Contains(whose, "replayer") {
			continue
		}
		everyRightIsNeeded(t, all, whose, calls)
	}
}

// everyRightIsNeeded checks each action and resource of one document.
func everyRightIsNeeded(t *testing.T, all map[string]rights.Document, whose string, calls []call) {
	t.Helper()
	for i, s := range all[whose].Statement {
		if s.Effect != "Allow" {
			continue
		}
		var mutants []mutant
		for taken, rest := range removeAt(s.Action) {
			less := s
			less.Action = rest
			mutants = append(mutants, mutant{taken, replaceStatement(all, whose, i, pick(less, rest)...)})
		}
		if len(s.Resource) > 1 {
			for taken, rest := range removeAt(s.Resource) {
				less := s
				less.Resource = rest
				mutants = append(mutants, mutant{taken, replaceStatement(all, whose, i, less)})
			}
		}
		for _, m := range mutants {
			if !breaksCall(t, m, calls) {
				t.Errorf("%s/%s does not need %s", whose, s.Sid, m.name)
			}
		}
	}
}

// pick returns the statement if elements are left, otherwise none.
func pick(s rights.Statement, left []string) []rights.Statement {
	if len(left) == 0 {
		return nil
	}
	return []rights.Statement{s}
}

func breaksCall(t *testing.T, m mutant, calls []call) bool {
	t.Helper()
	s := joist(t, m.name, withoutStatements(m.documents))
	return slices.ContainsFunc(calls, func(c call) bool {
		ok, _ := s.isAllowed(t, c)
		return !ok
	})
}

// withoutStatements removes documents without statements, which are invalid in IAM.
func withoutStatements(all map[string]rights.Document) map[string]rights.Document {
	maps.DeleteFunc(all, func(_ string, d rights.Document) bool { return len(d.Statement) == 0 })
	return all
}

// redundant are conditions that no attack needs, with the reason to keep them.
var redundant = map[string]string{
	"AllowOwnRules: StringEquals aws:SourceAccount": "the rules' ARNs contain the account; auditors look for either",
	"OwnSchedules: StringEquals aws:SourceAccount":  "the group's ARN contains the account",
	"PodIdentity: StringEquals aws:SourceAccount":   "the cluster's ARN contains the account",
}

// equivalentConditions are the statements that EC2 evaluates together: creating a
// resource with tags, and tagging it during its creation. Each alone would deny, so a
// condition counts as needed if an attack succeeds when it is removed from both.
var equivalentConditions = []string{"LaunchWithTags", "MakeTemplateWithTags", "TagAtBirth"}

// Each condition and each denial prevents an attack, and the list of attacks notices if
// it is removed.
func TestEveryConditionIsNeeded(t *testing.T) {
	all := deployed(t, currentSystem)
	list := append(attacks(), preparatoryCalls()...)
	used := map[string]bool{}
	for _, whose := range ours(all) {
		for i, s := range all[whose].Statement {
			for _, m := range withoutCondition(all, whose, i, s) {
				name := whose + "/" + s.Sid + ": " + m.name
				if allowsAttack(t, m, whose, list) {
					continue
				}
				if slices.Contains(equivalentConditions, s.Sid) && allowsAttack(t, mutant{m.name, withoutTwins(all, whose, m.name)}, whose, list) {
					continue
				}
				if redundant[s.Sid+": "+m.name] == "" {
					t.Errorf("without %s every attack is still denied", name)
				}
				used[s.Sid+": "+m.name] = true
			}
		}
	}
	for name := range redundant {
		if !used[name] {
			t.Errorf("%s is needed now: remove it from the list", name)
		}
	}
}

// withoutCondition returns the mutants without the denial, or without one of the
// statement's conditions.
func withoutCondition(all map[string]rights.Document, whose string, i int, s rights.Statement) []mutant {
	if s.Effect == "Deny" {
		return []mutant{{"the denial", replaceStatement(all, whose, i)}}
	}
	return withoutValue(all, whose, i, s)
}

// withoutValue returns the mutants of an allowing statement without one of its
// conditions.
func withoutValue(all map[string]rights.Document, whose string, i int, s rights.Statement) []mutant {
	var out []mutant
	for operator, keys := range s.Condition {
		for key := range keys {
			less := s
			less.Condition = rights.Condition{}
			for o, ks := range s.Condition {
				less.Condition[o] = maps.Clone(ks)
			}
			delete(less.Condition[operator], key)
			if len(less.Condition[operator]) == 0 {
				delete(less.Condition, operator)
			}
			out = append(out, mutant{operator + " " + key, replaceStatement(all, whose, i, less)})
		}
	}
	return out
}

// withoutTwins removes a condition from all equivalent statements.
func withoutTwins(all map[string]rights.Document, whose, name string) map[string]rights.Document {
	for i, s := range all[whose].Statement {
		if !slices.Contains(equivalentConditions, s.Sid) {
			continue
		}
		for _, m := range withoutValue(all, whose, i, s) {
			if m.name == name {
				all = m.documents
			}
		}
	}
	return all
}

// allowsAttack reports whether an attack succeeds that the policy's principal makes, or
// that targets the policy's resource.
func allowsAttack(t *testing.T, m mutant, whose string, list []attack) bool {
	t.Helper()
	s := joist(t, m.name, withoutStatements(m.documents))
	owner := strings.TrimSuffix(strings.TrimSuffix(whose, "/function"), "/network")
	service, ofRole := strings.CutPrefix(owner, cluster+"/")
	shared, ofCommon := strings.CutPrefix(owner, common+"/")
	return slices.ContainsFunc(list, func(a attack) bool {
		if ofRole && a.who != service || ofCommon && a.who != shared && a.who != "common/"+shared {
			return false
		}
		if !ofRole && !ofCommon && !slices.ContainsFunc(a.needs, func(n need) bool { return preventsAttack(s, whose, n.resource) }) {
			return false
		}
		ok, _ := s.isAllowed(t, a.call)
		return ok
	})
}

func preventsAttack(s system, arn, resource string) bool {
	if service, ok := strings.CutPrefix(resource, placeholder); ok {
		resource = s.role(service)
	}
	return resource == arn || strings.HasPrefix(resource, arn+"/")
}
