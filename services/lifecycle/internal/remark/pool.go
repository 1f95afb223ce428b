package remark

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About NodePools, and the health of their nodes.
var (
	NodeRepairBlocked = Remark{Type: warning, Reason: karpenter.ReasonNodeRepairBlocked, Every: 15 * time.Minute}
)
