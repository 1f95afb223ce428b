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
	clusterRole = "arn:aws:iam::1:role/prod-joist-planner"
	hostRole    = "arn:aws:iam::1:role/all-joist-planner"
	takenTrust  = `{"Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::1:root"},"Action":"sts:AssumeRole","Condition":{` +
		`"ArnEquals":{"aws:PrincipalArn":"` + hostRole + `"},"StringEquals":{"sts:RoleSessionName":"planner@prod"}}}]}`
)

// together is a sound installation whose planner is a function that clusters share.
func together(t *testing.T, trust string) doctor.Facts {
	t.Helper()
	f := sound(t)
	fn := f.Functions["planner"]
	fn.Name, fn.Role, fn.Shared = "all-joist-planner", hostRole, &doctor.Shared{Told: true, Role: clusterRole, Trust: &trust}
	return f
}

// TestSharedFunctions spoils one fact about a function that clusters share.
func TestSharedFunctions(t *testing.T) {
	if found := doctor.Examine(together(t, takenTrust)); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	trust := func(old, now string) func(fn *doctor.Function) {
		return func(fn *doctor.Function) {
			text := strings.ReplaceAll(takenTrust, old, now)
			fn.Shared.Trust = &text
		}
	}
	for _, test := range []struct {
		name             string
		spoil            func(fn *doctor.Function)
		check, says, fix string
	}{
		{"its timeout is the queue's to hide", func(fn *doctor.Function) { fn.Timeout++ }, "visibility-short", "the function all-joist-planner", "VisibilityTimeout"},
		{"no mapping", func(fn *doctor.Function) { fn.Mapped, fn.Enabled = false, false }, "mapping-missing", "prod-joist-planner", "create-event-source-mapping"},
		{"it is not told", func(fn *doctor.Function) { fn.Shared = &doctor.Shared{} }, "function-untold", "JOIST_CLUSTERS", "cdk deploy"},
		{"another's role is trusted", trust("all-joist", "other-joist"), "trust-function", hostRole, "--role-name prod-joist-planner"},
		{"another's session", trust("planner@prod", "planner@staging"), "trust-function", "planner@prod", ""},
		{"another account", trust("1:root", "2:root"), "trust-function", "", ""},
		{"a function's role that the cluster's own had", func(fn *doctor.Function) { text := podsTrust; fn.Shared.Trust = &text }, "trust-function", "", ""},
		{"no policy", func(fn *doctor.Function) { text := "{"; fn.Shared.Trust = &text }, "trust-function", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := together(t, takenTrust)
			test.spoil(f.Functions["planner"])
			found := doctor.Examine(f)
			if len(found) != 1 || found[0].Check != test.check || !strings.Contains(found[0].What, test.says) || !strings.Contains(found[0].Fix, test.fix) {
				t.Errorf("found %+v, want one %s with %q and %q", found, test.check, test.says, test.fix)
			}
		})
	}
}

// TestTrustsOfOtherShapes: whoever writes trust policies by hand has other ways to say the
// same, and conditions on anything else are taken to hold.
func TestTrustsOfOtherShapes(t *testing.T) {
	for name, change := range map[string][2]string{
		"a pattern":         {hostRole + `"`, `arn:aws:iam::*"`},
		"the role itself":   {"arn:aws:iam::1:root", hostRole},
		"the account's id":  {"arn:aws:iam::1:root", "1"},
		"anybody":           {`{"AWS":"arn:aws:iam::1:root"}`, `"*"`},
		"another key":       {"sts:RoleSessionName", "aws:SourceIp"},
		"a key's other way": {"aws:PrincipalArn", "aws:principalarn"},
		"not another":       {`"StringEquals":{"sts:RoleSessionName":"planner@prod"`, `"StringNotEquals":{"sts:RoleSessionName":"planner@staging"`},
	} {
		trust := strings.Replace(takenTrust, change[0], change[1], 1)
		if found := doctor.Examine(together(t, trust)); trust == takenTrust || len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestTaker(t *testing.T) {
	for trust, want := range map[string]string{takenTrust: hostRole, nodeTrust: "", podTrust: "", "{": ""} {
		if got := doctor.Taker(trust); got != want {
			t.Errorf("%s: %q", trust, got)
		}
	}
}

// TestWhoWorksOnTheQueue: the role that a shared function takes works on no queue, and the
// function's own role does that and takes it, and nothing else.
func TestWhoWorksOnTheQueue(t *testing.T) {
	f := together(t, takenTrust)
	arns, sure := f.Names(topology.Outside)
	if arns["planner"] != clusterRole || !sure["planner"] {
		t.Errorf("the planner's role is %s, %t", arns["planner"], sure["planner"])
	}
	card := doctor.Card{Plan: f.Plan, Place: f.Place, Bucket: "b", Prefix: "prod", Functions: f.Functions}
	asked := func(needs []doctor.Need) []string {
		all := map[string]bool{}
		for _, need := range needs {
			for _, action := range need.Actions {
				all[action] = true
			}
		}
		return slices.Sorted(maps.Keys(all))
	}
	if got := asked(card.Needs("planner")); slices.Contains(got, "sqs:ReceiveMessage") || !slices.Contains(got, "sqs:SendMessage") {
		t.Errorf("the cluster's role: %v", got)
	}
	want := []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sts:AssumeRole"}
	if got := asked(card.Taking("planner")); !slices.Equal(got, want) {
		t.Errorf("the function's role: %v", got)
	}
	if got := card.Taking("launcher"); got != nil {
		t.Errorf("a function of the cluster's own takes a role: %v", got)
	}
	for what, fn := range map[string]*doctor.Function{"not told": {Role: hostRole, Shared: &doctor.Shared{}}, "told nobody knows what": {}} {
		card.Functions = map[string]*doctor.Function{"planner": fn}
		if got := asked(card.Needs("planner")); slices.Contains(got, "sqs:ReceiveMessage") {
			t.Errorf("the cluster's role, where the function is %s: %v", what, got)
		}
	}
	f.Functions["planner"].Shared = &doctor.Shared{}
	if arns, sure := f.Names(topology.Outside); sure["planner"] || arns["planner"] != clusterRole {
		t.Errorf("of a function that is not told: %s, %t", arns["planner"], sure["planner"])
	}
}
