package upstream

import (
	"testing"

	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// What makes a node sick, and for how long it may be, is what it is with Karpenter.
func TestSameRepairPolicies(t *testing.T) {
	ours, err := karpenter.ParseRepairPolicies(karpenter.RepairPolicies)
	if err != nil {
		t.Fatal(err)
	}
	var theirs []karpenter.RepairPolicy
	for _, p := range new(cloudprovider.CloudProvider).RepairPolicies() {
		theirs = append(theirs, karpenter.RepairPolicy{Condition: p.ConditionType, Status: p.ConditionStatus, After: p.TolerationDuration})
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("policies (-upstream +ours):\n%s", diff)
	}
}
