package events

import "github.com/joist-autoscaler/joist/shared/karpenter"

// About drains, on nodes, NodeClaims and pods.
var (
	Evicted                  = Reason{Type: normal, Reason: karpenter.ReasonEvicted}
	Disrupted                = Reason{Type: normal, Reason: karpenter.ReasonDisrupted}
	FailedDraining           = Reason{Type: warning, Reason: karpenter.ReasonFailedDraining}
	AwaitingVolumeDetachment = Reason{Type: normal, Reason: karpenter.ReasonAwaitingVolumeDetachment}
	GracePeriodExpiring      = Reason{Type: warning, Reason: karpenter.ReasonGracePeriodExpiring}

	InvalidDoNotDisrupt = Reason{Type: warning, Reason: karpenter.ReasonInvalidDoNotDisrupt, Exact: true}
	DoNotDisruptUntil   = Reason{Type: normal, Reason: karpenter.ReasonDoNotDisruptUntil, Exact: true}
	DoNotDisruptElapsed = Reason{Type: normal, Reason: karpenter.ReasonDoNotDisruptElapsed}
)
