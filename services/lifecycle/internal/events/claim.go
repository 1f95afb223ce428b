package events

import "github.com/joist-autoscaler/joist/shared/karpenter"

// About NodeClaims that come up, or run, and their nodes.
var (
	InsufficientCapacity   = Reason{Type: warning, Reason: karpenter.ReasonInsufficientCapacity}
	NodeClassNotReady      = Reason{Type: warning, Reason: karpenter.ReasonNodeClassNotReady}
	UnregisteredTaint      = Reason{Type: warning, Reason: karpenter.ReasonUnregisteredTaint}
	FailedConsistencyCheck = Reason{Type: warning, Reason: karpenter.ReasonFailedConsistencyCheck, Exact: true}
	// LaunchFailed is our own: upstream tells of a launch that is no shortage in
	// its log and the claim's condition only.
	LaunchFailed = Reason{Type: warning, Reason: "LaunchFailed"}
)
