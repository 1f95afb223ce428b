package nodeclaim

import (
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// RegistrationHook delays the registration of a node. While a hook waits, the node
// keeps the unregistered taint, so that no pod is scheduled by labels that are not
// final. The registration timeout ends the wait.
type RegistrationHook struct {
	// Name is what the claim's condition says.
	Name string
	// Waits reports whether the claim's node may not be registered yet.
	Waits func(*karpenter.NodeClaim) bool
}

// PartitionHook waits for the partition that EC2 has put the instance into. Only an
// inventory tells it, unless the planner has asked for a certain one; until then
// the label is there and empty.
var PartitionHook = RegistrationHook{Name: "PlacementGroupRegistrationHook", Waits: func(c *karpenter.NodeClaim) bool {
	_, grouped := c.Labels[karpenter.LabelPlacementGroupID]
	partition, parted := c.Labels[karpenter.LabelPlacementGroupPartition]
	return grouped && parted && partition == ""
}}

// RegistrationHooks are the hooks of this provider.
var RegistrationHooks = []RegistrationHook{PartitionHook}

// PendingHooks names the hooks that wait, in their order.
func PendingHooks(hooks []RegistrationHook, c *karpenter.NodeClaim) []string {
	var names []string
	for _, h := range hooks {
		if h.Waits(c) {
			names = append(names, h.Name)
		}
	}
	return names
}
