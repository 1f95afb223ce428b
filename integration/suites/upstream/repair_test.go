package upstream

import (
	"testing"

	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Joist and Karpenter have the same conditions of unhealthy nodes, with the same
// tolerations.
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
