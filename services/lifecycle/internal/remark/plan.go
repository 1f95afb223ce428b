package remark

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About what plans make of pods, and of the NodePools that they are made from.
var (
	FailedScheduling          = Remark{Type: warning, Reason: karpenter.ReasonFailedScheduling, Every: 5 * time.Minute}
	Nominated                 = Remark{Type: normal, Reason: karpenter.ReasonNominated}
	NoCompatibleInstanceTypes = Remark{Type: warning, Reason: karpenter.ReasonNoCompatibleInstanceTypes, Every: time.Minute}
)
