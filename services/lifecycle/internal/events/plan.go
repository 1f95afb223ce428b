package events

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About what plans make of pods, and of the NodePools that they are made from.
var (
	FailedScheduling          = Reason{Type: warning, Reason: karpenter.ReasonFailedScheduling, RepeatAfter: 5 * time.Minute}
	Nominated                 = Reason{Type: normal, Reason: karpenter.ReasonNominated}
	NoCompatibleInstanceTypes = Reason{Type: warning, Reason: karpenter.ReasonNoCompatibleInstanceTypes, RepeatAfter: time.Minute}
)
