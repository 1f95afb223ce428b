package karpenter

import (
	"fmt"
	"strings"
	"testing"
)

func TestNodeClaimValidate(t *testing.T) {
	in := func(key string, values ...string) NodeSelectorRequirementWithMinValues {
		return NodeSelectorRequirementWithMinValues{Key: key, Operator: NodeSelectorOpIn, Values: values}
	}
	var many []NodeSelectorRequirementWithMinValues
	for i := range RequirementsMax + 1 {
		many = append(many, in(fmt.Sprintf("example.com/key-%d", i), "a"))
	}
	several := in("example.com/team", "a", "b")
	several.MinValues = new(3)
	for _, tt := range []struct {
		name string
		list []NodeSelectorRequirementWithMinValues
		want string
	}{
		{"none", nil, ""},
		{"its NodePool", []NodeSelectorRequirementWithMinValues{in(NodePoolLabelKey, "default")}, ""},
		{"its node class", []NodeSelectorRequirementWithMinValues{in(LabelEC2NodeClass, "default")}, ""},
		{"an empty value", []NodeSelectorRequirementWithMinValues{in("example.com/team", "")}, ""},
		{"a value with a space", []NodeSelectorRequirementWithMinValues{in("example.com/team", "a", "no label")}, `spec.requirements[0]: the value "no label" is wrong`},
		{"a value that is too long", []NodeSelectorRequirementWithMinValues{in("example.com/team", strings.Repeat("a", LabelValueMax+1))}, "63"},
		{"invalid key", []NodeSelectorRequirementWithMinValues{in("example.com/", "a")}, "the key is wrong"},
		{"a restricted domain", []NodeSelectorRequirementWithMinValues{in("karpenter.sh/initialized", "true")}, "label karpenter.sh/initialized is restricted"},
		{"a host name", []NodeSelectorRequirementWithMinValues{in("kubernetes.io/hostname", "a")}, "restricted"},
		{"In without values", []NodeSelectorRequirementWithMinValues{in("example.com/team")}, "needs 1 values and has 0"},
		{"fewer values than minValues", []NodeSelectorRequirementWithMinValues{several}, "needs 3 values and has 2"},
		{"a bound that is not an integer", []NodeSelectorRequirementWithMinValues{{Key: "example.com/size", Operator: NodeSelectorOpGt, Values: []string{"1.5"}}}, "needs one whole number"},
		{"a negative bound", []NodeSelectorRequirementWithMinValues{{Key: "example.com/size", Operator: NodeSelectorOpGt, Values: []string{"-1"}}}, `the value "-1" is wrong`},
		{"more than 100", many, "101 requirements"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := (&NodeClaim{Spec: NodeClaimSpec{Requirements: tt.list}}).Validate()
			if (len(errs) > 0) != (tt.want != "") {
				t.Fatalf("errors: %v", errs)
			}
			if tt.want != "" && !strings.Contains(errs[0].Error(), tt.want) {
				t.Errorf("%q does not contain %q", errs[0], tt.want)
			}
		})
	}
}
