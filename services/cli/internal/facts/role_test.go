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

// fakeSimulator simulates IAM's policy simulator. It denies every action. It rejects the
// actions in never, and those in alone if the call has other actions.
type fakeSimulator struct {
	alone, never []string
	code         string
	mu           sync.Mutex
	calls        int
}

func (s *fakeSimulator) SimulatePrincipalPolicy(_ context.Context, in *iam.SimulatePrincipalPolicyInput, _ ...func(*iam.Options)) (*iam.SimulatePrincipalPolicyOutput, error) {
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

// TestSimulateAllSplitsCalls: rejected calls are split, and each wanted pair is simulated
// once.
func TestSimulateAllSplitsCalls(t *testing.T) {
	c := testPermissions(t)
	wanted := 0
	for _, q := range groupPermissions(c.ServicePermissions("launcher"), c.BaseContext("launcher")) {
		wanted += len(q.wanted)
	}
	one := roleCheck{"launcher", "arn:aws:iam::1:role/prod-joist-launcher", true, c.ServicePermissions("launcher")}
	for _, test := range []struct {
		name    string
		of      *fakeSimulator
		refused int
		fails   bool
	}{
		{"all in one call", &fakeSimulator{}, wanted, false},
		{"some only alone", &fakeSimulator{alone: []string{"ec2:CreateFleet", "iam:PassRole", "ec2:RunInstances"}, code: "InvalidInput"}, wanted, false},
		{"one always rejected", &fakeSimulator{never: []string{"iam:PassRole"}, code: "InvalidInput"}, wanted - 1, true},
		{"no permission to simulate", &fakeSimulator{never: []string{"iam:PassRole"}, code: "AccessDenied"}, -1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			role, err := one.simulatePolicy(t.Context(), test.of, c.BaseContext("launcher"))
			if (err != nil) != test.fails || test.refused >= 0 && len(role.Denied) != test.refused {
				t.Errorf("%v, of %d: %v", role, wanted, err)
			}
			if calls := len(groupPermissions(one.permissions, c.BaseContext("launcher"))); test.of.code != "InvalidInput" && test.of.calls != calls {
				t.Errorf("%d calls, want %d", test.of.calls, calls)
			}
		})
	}
}

// TestRoleErrorsAreIndependent: an error for one role does not affect the others, and a
// missing permission is noted once.
func TestRoleErrorsAreIndependent(t *testing.T) {
	c := testPermissions(t)
	all := []roleCheck{{"launcher", "role/prod-joist-launcher", true, c.ServicePermissions("launcher")}, {"planner", "role/prod-joist-planner", true, c.ServicePermissions("planner")}}
	for code, want := range map[string]string{"InvalidInput": "the permissions of the role prod-joist-launcher", "AccessDenied": "the permissions of the roles"} {
		g := &collector{}
		client := &fakeSimulator{never: []string{"iam:PassRole"}, code: code}
		if code == "AccessDenied" {
			client.never = append(client.never, "s3:GetObject")
		}
		g.runRoleChecks(t.Context(), client, all, c)
		if len(g.skipped) != 1 || !strings.HasPrefix(g.skipped[0].Subject, want) {
			t.Errorf("%s: %+v", code, g.skipped)
		}
		isSimulated := slices.ContainsFunc(g.facts.Roles, func(r doctor.Role) bool { return r.Service == "planner" && len(r.Denied) > 0 })
		if code == "InvalidInput" && !isSimulated {
			t.Errorf("%s: %+v", code, g.facts.Roles)
		}
	}
}
