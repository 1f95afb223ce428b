package events

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About disruptions, on NodeClaims, nodes and NodePools.
var (
	DisruptionBlocked          = Reason{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, RepeatAfter: 15 * time.Minute}
	DisruptionLaunching        = Reason{Type: normal, Reason: karpenter.ReasonDisruptionLaunching, Exact: true}
	DisruptionWaitingReadiness = Reason{Type: normal, Reason: karpenter.ReasonDisruptionWaitingReadiness}
	DisruptionTerminating      = Reason{Type: normal, Reason: karpenter.ReasonDisruptionTerminating, Exact: true}
	// CandidateBlocked and Unconsolidatable are about nodes that stay. Karpenter repeats the
	// first after 2 min, of which client-go lets one in 5 min through for each object in the
	// long run. Package advice keeps another reason from being another Event too soon.
	CandidateBlocked = Reason{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, RepeatAfter: 5 * time.Minute, Exact: true}
	Unconsolidatable = Reason{Type: normal, Reason: karpenter.ReasonUnconsolidatable, RepeatAfter: 15 * time.Minute, Exact: true}
	// BudgetBlocked is upstream's about a NodePool, whose budgets may change each minute.
	BudgetBlocked = Reason{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, RepeatAfter: time.Minute, Exact: true}
)
