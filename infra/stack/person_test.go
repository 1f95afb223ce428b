package stack_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Every cluster has a policy for operators and one for replayers. The stack attaches them
// to no role; the account's owner does.
func TestPersonPolicies(t *testing.T) {
	forEachTemplate(t, func(t *testing.T, name string, in synthesis) {
		var names []string
		for id, p := range in.ofType(t, "AWS::IAM::ManagedPolicy") {
			names = append(names, p.text("ManagedPolicyName"))
			for _, to := range []string{"Roles", "Users", "Groups"} {
				if p.Properties[to] != nil {
					t.Errorf("%s is attached to %v", id, p.Properties[to])
				}
			}
			if text, _ := json.Marshal(p.Properties["PolicyDocument"]); len(text) > 6144 {
				t.Errorf("%s has %d characters, and 6,144 are allowed", id, len(text))
			}
		}
		slices.Sort(names)
		want := []string{"prod-joist-operator", "prod-joist-replayer"}
		switch name {
		case "seoul":
			want = []string{"seoul-joist-operator", "seoul-joist-replayer"}
		case "clusters", "shared":
			want = append(want, "staging-joist-operator", "staging-joist-replayer")
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The template has the policies of package rights, with which the joist commands are
// tested.
func TestPersonPoliciesMatchRights(t *testing.T) {
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	scope := rights.Scope{
		Partition: "aws", Account: place.Account, Region: place.Region, Plan: plan, Bucket: "joist-prod-" + place.Account + "-" + place.Region, Prefix: "prod",
		NodeRole: "arn:aws:iam::" + place.Account + ":role/KarpenterNodeRole-prod",
	}
	want := map[string]func() (rights.Document, error){"prod-joist-operator": scope.OperatorPolicy, "prod-joist-replayer": scope.ReplayerPolicy}
	for id, p := range synth(t, "fresh").ofType(t, "AWS::IAM::ManagedPolicy") {
		d, err := want[p.text("ManagedPolicyName")]()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(simple(d.ToMap()), simple(p.Properties["PolicyDocument"])); diff != "" {
			t.Errorf("%s (-rights +template):\n%s", id, diff)
		}
	}
}

// simple returns a document with single values instead of lists of one, which are
// equivalent.
func simple(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[key] = simple(inner)
		}
		return out
	case []any:
		if len(v) == 1 {
			return simple(v[0])
		}
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = simple(inner)
		}
		return out
	}
	return value
}
