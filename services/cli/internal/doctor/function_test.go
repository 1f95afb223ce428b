package doctor_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	clusterRole  = "arn:aws:iam::1:role/prod-joist-planner"
	hostRole     = "arn:aws:iam::1:role/all-joist-planner"
	assumedTrust = `{"Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::1:root"},"Action":"sts:AssumeRole","Condition":{` +
		`"ArnEquals":{"aws:PrincipalArn":"` + hostRole + `"},"StringEquals":{"sts:RoleSessionName":"planner@prod"}}}]}`
)

// sharedFacts returns a sound installation whose planner is a shared function.
func sharedFacts(t *testing.T, trust string) doctor.Facts {
	t.Helper()
	f := soundFacts(t)
	fn := f.Functions["planner"]
	fn.Name, fn.Role, fn.Shared = "all-joist-planner", hostRole, &doctor.Shared{HasEntry: true, Role: clusterRole, Trust: &trust}
	return f
}

// TestSharedFunctions changes one fact about a shared function.
func TestSharedFunctions(t *testing.T) {
	if found := doctor.Examine(sharedFacts(t, assumedTrust)); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	trust := func(old, now string) func(fn *doctor.Function) {
		return func(fn *doctor.Function) {
			text := strings.ReplaceAll(assumedTrust, old, now)
			fn.Shared.Trust = &text
		}
	}
	for _, test := range []struct {
		name             string
		edit             func(fn *doctor.Function)
		check, says, fix string
	}{
		{"a timeout above the visibility timeout", func(fn *doctor.Function) { fn.Timeout++ }, "visibility-short", "the function all-joist-planner", "VisibilityTimeout"},
		{"no mapping", func(fn *doctor.Function) { fn.Mapped, fn.Enabled = false, false }, "event-source-mapping-missing", "prod-joist-planner", "create-event-source-mapping"},
		{"no entry for the cluster", func(fn *doctor.Function) { fn.Shared = &doctor.Shared{} }, "function-settings-missing", "JOIST_CLUSTERS", "cdk deploy"},
		{"another trusted role", trust("all-joist", "other-joist"), "trust-function", hostRole, "--role-name prod-joist-planner"},
		{"another session name", trust("planner@prod", "planner@staging"), "trust-function", "planner@prod", ""},
		{"another account", trust("1:root", "2:root"), "trust-function", "", ""},
		{"a trust policy for pods", func(fn *doctor.Function) { text := podsTrust; fn.Shared.Trust = &text }, "trust-function", "", ""},
		{"no policy", func(fn *doctor.Function) { text := "{"; fn.Shared.Trust = &text }, "trust-function", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := sharedFacts(t, assumedTrust)
			test.edit(f.Functions["planner"])
			found := doctor.Examine(f)
			if len(found) != 1 || found[0].Check != test.check || !strings.Contains(found[0].Message, test.says) || !strings.Contains(found[0].Fix, test.fix) {
				t.Errorf("found %+v, want one %s with %q and %q", found, test.check, test.says, test.fix)
			}
		})
	}
}

// TestEquivalentTrustPolicies: other trust policies with the same effect are accepted, and
// conditions on other keys are assumed to be true.
func TestEquivalentTrustPolicies(t *testing.T) {
	for name, change := range map[string][2]string{
		"a pattern":             {hostRole + `"`, `arn:aws:iam::*"`},
		"the role itself":       {"arn:aws:iam::1:root", hostRole},
		"the account's id":      {"arn:aws:iam::1:root", "1"},
		"every principal":       {`{"AWS":"arn:aws:iam::1:root"}`, `"*"`},
		"another key":           {"sts:RoleSessionName", "aws:SourceIp"},
		"a key in another case": {"aws:PrincipalArn", "aws:principalarn"},
		"not another":           {`"StringEquals":{"sts:RoleSessionName":"planner@prod"`, `"StringNotEquals":{"sts:RoleSessionName":"planner@staging"`},
	} {
		trust := strings.Replace(assumedTrust, change[0], change[1], 1)
		if found := doctor.Examine(sharedFacts(t, trust)); trust == assumedTrust || len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestAssumingRole(t *testing.T) {
	for trust, want := range map[string]string{assumedTrust: hostRole, nodeTrust: "", podTrust: "", "{": ""} {
		if got := doctor.AssumingRole(trust); got != want {
			t.Errorf("%s: %q", trust, got)
		}
	}
}

// TestSharedFunctionPermissions: the role that a shared function assumes does not consume the
// queue; the function's own role consumes the queue and assumes the other, and nothing else.
func TestSharedFunctionPermissions(t *testing.T) {
	f := sharedFacts(t, assumedTrust)
	arns, sure := f.RoleARNs(topology.ExternalServices)
	if arns["planner"] != clusterRole || !sure["planner"] {
		t.Errorf("the planner's role is %s, %t", arns["planner"], sure["planner"])
	}
	card := doctor.PermissionSet{Plan: f.Plan, Location: f.Location, Bucket: "b", Prefix: "prod", Functions: f.Functions}
	listActions := func(needs []doctor.Permission) []string {
		all := map[string]bool{}
		for _, need := range needs {
			for _, action := range need.Actions {
				all[action] = true
			}
		}
		return slices.Sorted(maps.Keys(all))
	}
	if got := listActions(card.ServicePermissions("planner")); slices.Contains(got, "sqs:ReceiveMessage") || !slices.Contains(got, "sqs:SendMessage") {
		t.Errorf("the cluster's role: %v", got)
	}
	want := []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sts:AssumeRole"}
	if got := listActions(card.AssumingPermissions("planner")); !slices.Equal(got, want) {
		t.Errorf("the function's role: %v", got)
	}
	if got := card.AssumingPermissions("launcher"); got != nil {
		t.Errorf("a function of one cluster has permissions to assume a role: %v", got)
	}
	for what, fn := range map[string]*doctor.Function{"without an entry": {Role: hostRole, Shared: &doctor.Shared{}}, "with unknown settings": {}} {
		card.Functions = map[string]*doctor.Function{"planner": fn}
		if got := listActions(card.ServicePermissions("planner")); slices.Contains(got, "sqs:ReceiveMessage") {
			t.Errorf("the cluster's role, with a function %s: %v", what, got)
		}
	}
	f.Functions["planner"].Shared = &doctor.Shared{}
	if arns, sure := f.RoleARNs(topology.ExternalServices); sure["planner"] || arns["planner"] != clusterRole {
		t.Errorf("a function without an entry: %s, %t", arns["planner"], sure["planner"])
	}
}

// With the gate RebootForRepair of lifecycle, the launcher needs the permission to reboot instances.
func TestRebootPermission(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "RebootForRepair=false": false, "NodeClassCEL=true": false, "DRAEFA=false, RebootForRepair = true": true, "RebootForRepair=maybe": false,
	} {
		f := doctor.Facts{Deployments: []doctor.Deployment{
			{Component: "watcher", Environ: map[string]string{"AWS_FEATURE_GATES": "RebootForRepair=true"}}, {Component: "lifecycle", Environ: map[string]string{"AWS_FEATURE_GATES": text}},
		}}
		card := doctor.PermissionSet{Plan: sharedFacts(t, assumedTrust).Plan, Reboots: f.RebootsNodes()}
		if got := slices.ContainsFunc(card.ServicePermissions("launcher"), func(p doctor.Permission) bool { return slices.Contains(p.Actions, "ec2:RebootInstances") }); got != want {
			t.Errorf("with the gates %q: %t", text, got)
		}
	}
}
