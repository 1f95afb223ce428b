package remark

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About disruptions, on NodeClaims, nodes and NodePools.
var (
	DisruptionBlocked          = Remark{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, Every: 15 * time.Minute}
	DisruptionLaunching        = Remark{Type: normal, Reason: karpenter.ReasonDisruptionLaunching, Exact: true}
	DisruptionWaitingReadiness = Remark{Type: normal, Reason: karpenter.ReasonDisruptionWaitingReadiness}
	DisruptionTerminating      = Remark{Type: normal, Reason: karpenter.ReasonDisruptionTerminating, Exact: true}
	// BudgetBlocked is upstream's about a NodePool, whose budgets may change each minute.
	BudgetBlocked = Remark{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, Every: time.Minute, Exact: true}
)
