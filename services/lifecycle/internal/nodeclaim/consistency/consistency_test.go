package consistency_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/consistency"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestConsistencyIssues(t *testing.T) {
	for _, test := range []struct {
		name                       string
		requested, expected, found corev1.ResourceList
		change                     func(*karpenter.NodeClaim)
		want                       []string
	}{
		{"as expected", list("cpu", "1"), list("cpu", "4"), list("cpu", "4"), nil, nil},
		{"90% is enough", list("memory", "1"), list("memory", "10Gi"), list("memory", "9Gi"), nil, nil},
		{
			"slightly less than 90%", list("memory", "1"), list("memory", "1000Mi"), list("memory", "899Mi"), nil,
			[]string{"expected 1000Mi of resource memory, but found 899Mi (89.9% of expected)"},
		},
		{"more than expected", list("cpu", "1"), list("cpu", "4"), list("cpu", "8"), nil, nil},
		{
			"a missing device", list("nvidia.com/gpu", "1", "cpu", "1"), list("nvidia.com/gpu", "8", "cpu", "4"), list("cpu", "2"), nil,
			[]string{"expected 4 of resource cpu, but found 2 (50.0% of expected)", "expected 8 of resource nvidia.com/gpu, but found 0 (0.0% of expected)"},
		},
		{"not requested", list("cpu", "0"), list("cpu", "4", "memory", "8Gi"), list(), nil, nil},
		{"not expected", list("cpu", "1"), list("cpu", "0"), list(), nil, nil},
		{"not initialized", list("cpu", "1"), list("cpu", "4"), list(), func(c *karpenter.NodeClaim) { c.Status.Conditions = nil }, nil},
		{"being deleted", list("cpu", "1"), list("cpu", "4"), list(), func(c *karpenter.NodeClaim) { c.DeletionTimestamp = &metav1.Time{} }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			claim, node := &karpenter.NodeClaim{}, &corev1.Node{}
			claim.Spec.Resources.Requests, claim.Status.Capacity, node.Status.Capacity = test.requested, test.expected, test.found
			claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
				Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue,
			}, time.Time{})
			if test.change != nil {
				test.change(claim)
			}
			if diff := cmp.Diff(test.want, consistency.FindIssues(claim, node)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConsistencyCondition(t *testing.T) {
	if got := consistency.ConditionOf(nil); got.Status != metav1.ConditionTrue || got.Reason != "ConsistentStateFound" {
		t.Errorf("a consistent node has the condition %+v", got)
	}
	got := consistency.ConditionOf([]string{"expected 4"})
	if got.Status != metav1.ConditionFalse || got.Reason != "ConsistencyCheckFailed" || got.Message != "Consistency Check Failed" {
		t.Errorf("a node that is too small has the condition %+v", got)
	}
}
