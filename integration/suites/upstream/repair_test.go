package upstream

import (
	"fmt"
	"testing"

	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Joist and Karpenter with --legacy-node-repair have the same conditions of unhealthy nodes,
// with the same tolerations.
func TestSameRepairPolicies(t *testing.T) {
	ours, err := karpenter.ParseRepairPolicies(karpenter.RepairPolicies)
	if err != nil {
		t.Fatal(err)
	}
	provider := new(cloudprovider.CloudProvider)
	cloudprovider.WithLegacyRepairPolicies(true)(provider)
	var theirs []karpenter.RepairPolicy
	for _, p := range provider.RepairPolicies() {
		theirs = append(theirs, karpenter.RepairPolicy{Condition: p.ConditionType, Status: p.ConditionStatus, After: p.TolerationDuration})
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("policies (-upstream +ours):\n%s", diff)
	}
}

// Without that flag, Karpenter's policies also depend on the condition's reason, and bound the
// drain. These policies have no equal in Joist.
func TestRepairPoliciesByReason(t *testing.T) {
	ours, err := karpenter.ParseRepairPolicies(karpenter.RepairPolicies)
	if err != nil {
		t.Fatal(err)
	}
	same := map[string]bool{}
	for _, p := range ours {
		same[p.String()] = true
	}
	var different []string
	for _, p := range new(cloudprovider.CloudProvider).RepairPolicies() {
		policy := karpenter.RepairPolicy{Condition: p.ConditionType, Status: p.ConditionStatus, After: p.TolerationDuration}.String()
		if !same[policy] || p.ReasonRegex != ".*" {
			different = append(different, fmt.Sprintf("%s %q drains %s, %s", policy, p.ReasonRegex, p.TerminationGracePeriod, p.Action))
		}
	}
	want := []string{
		`AcceleratedHardwareReady=False:10m0s ".*XID(46|48|54|62|63|95|109|110|136|140|143|155|156|158).*" drains 5m0s, ReplaceNode`,
		`AcceleratedHardwareReady=False:10m0s ".*XID(64|74|79|119|120).*" drains 5m0s, ReplaceNode`,
		`AcceleratedHardwareReady=False:30m0s "" drains 10m0s, ReplaceNode`,
	}
	if diff := cmp.Diff(want, different); diff != "" {
		t.Errorf("policies that Joist lacks (-want +got):\n%s", diff)
	}
}
