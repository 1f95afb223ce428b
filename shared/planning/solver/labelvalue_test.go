package solver_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestOnlyLabelValuesMatch checks that a requirement with a value that is no valid label value matches
// no node, with any operator.
func TestOnlyLabelValuesMatch(t *testing.T) {
	operators := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}
	character := rapid.SampledFrom([]rune("aZ09-_. /=é\x1b"))
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(character, 0, 66, -1).Draw(t, "value")
		operator := rapid.SampledFrom(operators).Draw(t, "operator")
		valid := len(validation.IsValidLabelValue(value)) == 0
		if got := planning.NewValues(operator, "good", value); got.IsEmpty() == valid {
			t.Fatalf("%s [good %q] = %s, valid value: %t", operator, value, got, valid)
		}
	})
	for _, length := range []int{62, 63, 64} {
		if got, want := planning.NewValues("In", strings.Repeat("a", length)).IsEmpty(), length > 63; got != want {
			t.Errorf("a value of %d characters matches no node: %t, want %t", length, got, want)
		}
	}
	for _, tt := range []struct {
		operator corev1.NodeSelectorOperator
		bound    string
	}{{karpenter.NodeSelectorOpGt, "-1"}, {karpenter.NodeSelectorOpLt, "-1"}, {karpenter.NodeSelectorOpLt, "0"}, {karpenter.NodeSelectorOpGte, "+1"}} {
		if got := planning.NewValues(tt.operator, tt.bound); !got.IsEmpty() {
			t.Errorf("%s %s = %s, want no match because no label value satisfies it", tt.operator, tt.bound, got)
		}
	}
	if planning.NewLabelRequirements(map[string]string{"example.com/team": "no label"}).IsCompatible(planning.NewLabelRequirements(map[string]string{"example.com/team": "no label"})) {
		t.Error("an invalid label value matches itself")
	}
}

// TestOddAffinitiesGiveValidClaims checks for odd node affinities that the pod is placed and the API server
// accepts the planned NodeClaim.
func TestOddAffinitiesGiveValidClaims(t *testing.T) {
	one := func(key string, operator corev1.NodeSelectorOperator, values ...string) []corev1.NodeSelectorRequirement {
		return []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}
	}
	var many []corev1.NodeSelectorRequirement
	for i := range 150 {
		many = append(many, one(fmt.Sprintf("example.com/key-%d", i), "NotIn", "a")...)
	}
	for _, tt := range []struct {
		name string
		want []corev1.NodeSelectorRequirement
	}{
		{"an invalid value", one("example.com/team", "In", "no label, --v=9")},
		{"an invalid value among several", one("example.com/team", "In", "a", "no label")},
		{"an invalid excluded value", one("example.com/team", "NotIn", "no label")},
		{"above a negative number", one("example.com/team", "Gt", "-5")},
		{"less than zero", one("example.com/team", "Lt", "0")},
		{"less than one, and not zero", append(one("example.com/team", "Lt", "1"), one("example.com/team", "NotIn", "0")...)},
		{"an invalid instance type", one(corev1.LabelInstanceTypeStable, "In", "t4g.medium!")},
		{"excludes a restricted label", one("karpenter.sh/initialized", "NotIn", "true")},
		{"requires a restricted label to be absent", one("karpenter.k8s.aws/own", "DoesNotExist")},
		{"150 labels that must be absent", many},
	} {
		for _, required := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, required %t", tt.name, required), func(t *testing.T) {
				batch := planningtest.NewBatch(planningtest.NewPods("web", 2, "500m", "64Mi"), planningtest.NewPods("hostile", 1, "500m", "64Mi", func(s *planning.PodSpec) {
					s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
					if term := (corev1.NodeSelectorTerm{MatchExpressions: tt.want}); required {
						s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
					} else {
						s.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term}}
					}
				}))
				template := &batch.Snapshot.NodePools[0].Spec.Template.Spec
				template.Requirements = append(template.Requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: "example.com/team", Operator: "Exists"})
				result := solve(t, batch)
				placed := 0
				for _, node := range result.Nodes {
					placed += len(node.Pods)
					claim := karpenter.NodeClaim{Spec: karpenter.NodeClaimSpec{Requirements: node.Requirements.NodeSelectorRequirements()}}
					for _, err := range claim.Validate() {
						t.Errorf("the API server would reject the claim: %v", err)
					}
					for key, value := range node.Requirements.Labels() {
						if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
							t.Errorf("label %s = %q: %v", key, value, problems)
						}
					}
				}
				if least := map[bool]int{false: 3, true: 2}[required]; placed < least {
					t.Errorf("%d pods placed, want at least %d: %+v", placed, least, result.Unplaced)
				}
			})
		}
	}
}

// TestPoolsNeedLabelsOfTheirTypes launches only types that have a well-known label which the pool requires: the pool cannot
// give it to a node.
func TestPoolsNeedLabelsOfTheirTypes(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "100m", "64Mi"))
	requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*requirements = []karpenter.NodeSelectorRequirementWithMinValues{{Key: karpenter.LabelInstanceGPUName, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4"}}}
	batch.Snapshot.NodePools[0].Spec.Limits = nil
	result := solve(t, batch)
	if len(result.Nodes) != 1 {
		t.Fatalf("%d nodes, want one: %+v", len(result.Nodes), result.Unplaced)
	}
	for _, o := range result.Nodes[0].Offerings {
		if !strings.HasPrefix(o.InstanceType, "g4dn.") {
			t.Errorf("the node may be a %s, which has no such GPU", o.InstanceType)
		}
	}
}
