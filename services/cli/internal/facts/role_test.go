package facts

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
)

// simulator is IAM's. It judges some actions in no call with others, or in none at all, and
// refuses the role what is asked about in its name.
type simulator struct {
	alone, never []string
	code         string
	mu           sync.Mutex
	calls        int
}

func (s *simulator) SimulatePrincipalPolicy(_ context.Context, in *iam.SimulatePrincipalPolicyInput, _ ...func(*iam.Options)) (*iam.SimulatePrincipalPolicyOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	for _, action := range in.ActionNames {
		if slices.Contains(s.never, action) || slices.Contains(s.alone, action) && len(in.ActionNames) > 1 {
			return nil, &smithy.GenericAPIError{Code: s.code, Message: "Actions [..] and [..] require different authorization information."}
		}
	}
	out := &iam.SimulatePrincipalPolicyOutput{}
	for _, action := range in.ActionNames {
		for _, resource := range in.ResourceArns {
			out.EvaluationResults = append(out.EvaluationResults, types.EvaluationResult{
				EvalActionName: aws.String(action), EvalResourceName: aws.String(resource), EvalDecision: types.PolicyEvaluationDecisionTypeImplicitDeny,
			})
		}
	}
	return out, nil
}

// TestMixesAreAskedApart: what IAM does not judge in one call it is asked in several, and
// each wanted pair is judged once.
func TestMixesAreAskedApart(t *testing.T) {
	c := card(t)
	wanted := 0
	for _, q := range groupNeeds(c.Needs("launcher"), c.Base("launcher")) {
		wanted += len(q.wanted)
	}
	one := inquiry{"launcher", "arn:aws:iam::1:role/prod-joist-launcher", true, c.Needs("launcher")}
	for _, test := range []struct {
		name    string
		of      *simulator
		refused int
		fails   bool
	}{
		{"all in one call", &simulator{}, wanted, false},
		{"some alone", &simulator{alone: []string{"ec2:CreateFleet", "iam:PassRole", "ec2:RunInstances"}, code: "InvalidInput"}, wanted, false},
		{"one never", &simulator{never: []string{"iam:PassRole"}, code: "InvalidInput"}, wanted - 1, true},
		{"nobody may ask", &simulator{never: []string{"iam:PassRole"}, code: "AccessDenied"}, -1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			role, err := one.simulatePolicy(t.Context(), test.of, c.Base("launcher"))
			if (err != nil) != test.fails || test.refused >= 0 && len(role.Refused) != test.refused {
				t.Errorf("%v, of %d: %v", role, wanted, err)
			}
			if calls := len(groupNeeds(one.needs, c.Base("launcher"))); test.of.code != "InvalidInput" && test.of.calls != calls {
				t.Errorf("%d calls, want %d", test.of.calls, calls)
			}
		})
	}
}

// TestOneRoleTakesNothingFromTheOthers: where IAM judges one role in no way, the others are
// judged all the same, and whoever may not ask at all is told so once.
func TestOneRoleTakesNothingFromTheOthers(t *testing.T) {
	c := card(t)
	all := []inquiry{{"launcher", "role/prod-joist-launcher", true, c.Needs("launcher")}, {"planner", "role/prod-joist-planner", true, c.Needs("planner")}}
	for code, want := range map[string]string{"InvalidInput": "the permissions of the role prod-joist-launcher", "AccessDenied": "the permissions of the roles"} {
		g := &collector{}
		client := &simulator{never: []string{"iam:PassRole"}, code: code}
		if code == "AccessDenied" {
			client.never = append(client.never, "s3:GetObject")
		}
		g.simulateRole(t.Context(), client, all, c)
		if len(g.unseen) != 1 || !strings.HasPrefix(g.unseen[0].What, want) {
			t.Errorf("%s: %+v", code, g.unseen)
		}
		judged := slices.ContainsFunc(g.facts.Roles, func(r doctor.Role) bool { return r.Service == "planner" && len(r.Refused) > 0 })
		if code == "InvalidInput" && !judged {
			t.Errorf("%s: %+v", code, g.facts.Roles)
		}
	}
}
