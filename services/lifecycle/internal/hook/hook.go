// Package hook says what a node must wait for before it is registered, beside
// what every node does (B130). It is pure: a hook looks at a claim.
//
// The invariant: while a hook waits the node keeps the unregistered taint, so
// that no pod is put there by labels that are not true yet. Waiting ends with the
// registration timeout (B134).
package hook

import (
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Hook is one thing to wait for.
type Hook struct {
	// Name is what the claim's condition says.
	Name string
	// Waits reports whether the claim's node may not be registered yet.
	Waits func(*karpenter.NodeClaim) bool
}

// Partition waits for the partition that EC2 has put the instance into. Only an
// inventory tells it, unless the planner has asked for a certain one; until then
// the label is there and empty.
var Partition = Hook{Name: "PlacementGroupRegistrationHook", Waits: func(c *karpenter.NodeClaim) bool {
	_, grouped := c.Labels[karpenter.LabelPlacementGroupID]
	partition, parted := c.Labels[karpenter.LabelPlacementGroupPartition]
	return grouped && parted && partition == ""
}}

// All are the hooks of this provider.
var All = []Hook{Partition}

// Pending names the hooks that wait, in their order.
func Pending(hooks []Hook, c *karpenter.NodeClaim) []string {
	var names []string
	for _, h := range hooks {
		if h.Waits(c) {
			names = append(names, h.Name)
		}
	}
	return names
}
