package remark

import "github.com/joist-autoscaler/joist/shared/karpenter"

// About NodeClaims that come up, or run, and their nodes.
var (
	InsufficientCapacity   = Remark{Type: warning, Reason: karpenter.ReasonInsufficientCapacity}
	NodeClassNotReady      = Remark{Type: warning, Reason: karpenter.ReasonNodeClassNotReady}
	UnregisteredTaint      = Remark{Type: warning, Reason: karpenter.ReasonUnregisteredTaint}
	FailedConsistencyCheck = Remark{Type: warning, Reason: karpenter.ReasonFailedConsistencyCheck, Exact: true}
	// LaunchFailed is our own: upstream tells of a launch that is no shortage in
	// its log and the claim's condition only.
	LaunchFailed = Remark{Type: warning, Reason: "LaunchFailed"}
)
