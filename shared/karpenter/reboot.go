package karpenter

import "time"

// Reasons of ConditionTypeRebooting: the steps of a reboot, and its ends.
const (
	RebootRequestedReason = "RebootRequested"
	RebootIssuedReason    = "RebootIssued"
	RebootSucceededReason = "RebootSucceeded"
	RebootFailedReason    = "RebootFailed"
)

// IsRebooting reports whether the claim's node is drained for a reboot, or rebooted.
func (in *NodeClaim) IsRebooting() bool {
	return in.Status.Conditions.IsTrue(ConditionTypeRebooting)
}

// LastReboot returns when the last reboot of the claim's node ended; zero if it was never rebooted or is being rebooted.
func (in *NodeClaim) LastReboot() time.Time {
	c, _ := in.Status.Conditions.Get(ConditionTypeRebooting)
	if c.Status != "False" {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
