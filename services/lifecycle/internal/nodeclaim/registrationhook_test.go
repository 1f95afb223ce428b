package nodeclaim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestPartitionHook(t *testing.T) {
	const group, partition = karpenter.LabelPlacementGroupID, karpenter.LabelPlacementGroupPartition
	waits := []string{"PlacementGroupRegistrationHook"}
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   []string
	}{
		{"not in a placement group", nil, nil},
		{"in a placement group without partitions", map[string]string{group: "pg-1"}, nil},
		{"in an unknown partition", map[string]string{group: "pg-1", partition: ""}, waits},
		{"in a known partition", map[string]string{group: "pg-1", partition: "3"}, nil},
		{"an empty partition label, but no placement group", map[string]string{partition: ""}, nil},
	} {
		c := &karpenter.NodeClaim{}
		c.Labels = test.labels
		if diff := cmp.Diff(test.want, nodeclaim.PendingHooks(nodeclaim.RegistrationHooks, c)); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

// The condition names all waiting hooks.
func TestPendingHooks(t *testing.T) {
	says := func(name string, waits bool) nodeclaim.RegistrationHook {
		return nodeclaim.RegistrationHook{Name: name, Waits: func(*karpenter.NodeClaim) bool { return waits }}
	}
	got := nodeclaim.PendingHooks([]nodeclaim.RegistrationHook{says("a", true), says("b", false), says("c", true)}, &karpenter.NodeClaim{})
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" {
		t.Error(diff)
	}
}
