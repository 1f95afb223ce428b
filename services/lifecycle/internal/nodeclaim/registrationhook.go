package nodeclaim

import (
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// RegistrationHook delays the registration of a node. While a hook waits, the node keeps the
// unregistered taint, so that no pod is scheduled by labels that are not final. The wait ends with
// RegistrationTimeout.
type RegistrationHook struct {
	// Name appears in the message of the claim's condition.
	Name string
	// Waits reports whether the claim's node may not be registered yet.
	Waits func(*karpenter.NodeClaim) bool
}

// PartitionHook waits for the placement group partition of the instance. It comes from an
// inventory, unless the planner requested a partition; until then the label is empty.
var PartitionHook = RegistrationHook{Name: "PlacementGroupRegistrationHook", Waits: func(c *karpenter.NodeClaim) bool {
	_, grouped := c.Labels[karpenter.LabelPlacementGroupID]
	partition, parted := c.Labels[karpenter.LabelPlacementGroupPartition]
	return grouped && parted && partition == ""
}}

// RegistrationHooks are Joist's hooks.
var RegistrationHooks = []RegistrationHook{PartitionHook}

// PendingHooks returns the names of the hooks that wait, in order.
func PendingHooks(hooks []RegistrationHook, c *karpenter.NodeClaim) []string {
	var names []string
	for _, h := range hooks {
		if h.Waits(c) {
			names = append(names, h.Name)
		}
	}
	return names
}
