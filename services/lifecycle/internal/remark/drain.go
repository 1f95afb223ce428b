package remark

import "github.com/joist-autoscaler/joist/shared/karpenter"

// About drains, on nodes, NodeClaims and pods.
var (
	Evicted                  = Remark{Type: normal, Reason: karpenter.ReasonEvicted}
	Disrupted                = Remark{Type: normal, Reason: karpenter.ReasonDisrupted}
	FailedDraining           = Remark{Type: warning, Reason: karpenter.ReasonFailedDraining}
	AwaitingVolumeDetachment = Remark{Type: normal, Reason: karpenter.ReasonAwaitingVolumeDetachment}
	GracePeriodExpiring      = Remark{Type: warning, Reason: karpenter.ReasonGracePeriodExpiring}

	InvalidDoNotDisrupt = Remark{Type: warning, Reason: karpenter.ReasonInvalidDoNotDisrupt, Exact: true}
	DoNotDisruptUntil   = Remark{Type: normal, Reason: karpenter.ReasonDoNotDisruptUntil, Exact: true}
	DoNotDisruptElapsed = Remark{Type: normal, Reason: karpenter.ReasonDoNotDisruptElapsed}
)
