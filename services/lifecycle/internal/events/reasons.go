package events

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Events on NodeClaims and their nodes.
var (
	InsufficientCapacity   = Reason{Type: warning, Reason: karpenter.ReasonInsufficientCapacity}
	NodeClassNotReady      = Reason{Type: warning, Reason: karpenter.ReasonNodeClassNotReady}
	UnregisteredTaint      = Reason{Type: warning, Reason: karpenter.ReasonUnregisteredTaint}
	FailedConsistencyCheck = Reason{Type: warning, Reason: karpenter.ReasonFailedConsistencyCheck, Exact: true}
	// LaunchFailed is Joist's own: Karpenter reports launch errors other than insufficient
	// capacity only in its log and the claim's condition.
	LaunchFailed = Reason{Type: warning, Reason: "LaunchFailed"}
)

// Events on NodeClaims, nodes and NodePools about disruption.
var (
	DisruptionBlocked          = Reason{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, RepeatAfter: 15 * time.Minute}
	DisruptionLaunching        = Reason{Type: normal, Reason: karpenter.ReasonDisruptionLaunching, Exact: true}
	DisruptionWaitingReadiness = Reason{Type: normal, Reason: karpenter.ReasonDisruptionWaitingReadiness}
	DisruptionTerminating      = Reason{Type: normal, Reason: karpenter.ReasonDisruptionTerminating, Exact: true}
	// CandidateBlocked and Unconsolidatable are on nodes that are not disrupted. Karpenter
	// repeats the first after 2 min, of which client-go's rate limit admits one in 5 min for each
	// object. Publisher limits Events with another reason.
	CandidateBlocked = Reason{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, RepeatAfter: 5 * time.Minute, Exact: true}
	Unconsolidatable = Reason{Type: normal, Reason: karpenter.ReasonUnconsolidatable, RepeatAfter: 15 * time.Minute, Exact: true}
	// BudgetBlocked is Karpenter's Event on a NodePool, whose budgets may change each minute.
	BudgetBlocked = Reason{Type: normal, Reason: karpenter.ReasonDisruptionBlocked, RepeatAfter: time.Minute, Exact: true}
)

// Events on nodes, NodeClaims and pods about drains.
var (
	Evicted                  = Reason{Type: normal, Reason: karpenter.ReasonEvicted}
	Disrupted                = Reason{Type: normal, Reason: karpenter.ReasonDisrupted}
	FailedDraining           = Reason{Type: warning, Reason: karpenter.ReasonFailedDraining}
	AwaitingVolumeDetachment = Reason{Type: normal, Reason: karpenter.ReasonAwaitingVolumeDetachment}
	GracePeriodExpiring      = Reason{Type: warning, Reason: karpenter.ReasonGracePeriodExpiring}
	// AwaitingOtherNodeClaims is Joist's own: Karpenter launches each NodeClaim alone.
	AwaitingOtherNodeClaims = Reason{Type: normal, Reason: "AwaitingOtherNodeClaims"}

	InvalidDoNotDisrupt = Reason{Type: warning, Reason: karpenter.ReasonInvalidDoNotDisrupt, Exact: true}
	DoNotDisruptUntil   = Reason{Type: normal, Reason: karpenter.ReasonDoNotDisruptUntil, Exact: true}
	DoNotDisruptElapsed = Reason{Type: normal, Reason: karpenter.ReasonDoNotDisruptElapsed}
)

// Events on NodeClaims and nodes about interruptions, in Karpenter's words.
var (
	SpotInterrupted           = Reason{Type: warning, Reason: "SpotInterrupted"}
	RebalanceRecommended      = Reason{Type: normal, Reason: "SpotRebalanceRecommendation"}
	ReservationInterrupted    = Reason{Type: warning, Reason: "CapacityReservationInstanceInterrupted"}
	InstanceStopping          = Reason{Type: warning, Reason: "InstanceStopping"}
	InstanceTerminating       = Reason{Type: warning, Reason: "InstanceTerminating"}
	InstanceUnhealthy         = Reason{Type: warning, Reason: "InstanceUnhealthy"}
	TerminatingOnInterruption = Reason{Type: warning, Reason: "TerminatingOnInterruption"}
)

// Events on pods and NodePools about plans.
var (
	FailedScheduling          = Reason{Type: warning, Reason: karpenter.ReasonFailedScheduling, RepeatAfter: 5 * time.Minute}
	Nominated                 = Reason{Type: normal, Reason: karpenter.ReasonNominated}
	NoCompatibleInstanceTypes = Reason{Type: warning, Reason: karpenter.ReasonNoCompatibleInstanceTypes, RepeatAfter: time.Minute}
)

// Events on NodePools and about node health.
var (
	NodeRepairBlocked = Reason{Type: warning, Reason: karpenter.ReasonNodeRepairBlocked, RepeatAfter: 15 * time.Minute}
	RebootObserved    = Reason{Type: normal, Reason: karpenter.ReasonRebootObserved}
	RebootFailed      = Reason{Type: warning, Reason: karpenter.ReasonRebootFailed, Exact: true}
	// Each zone has its own Event.
	ZonalShiftActive  = Reason{Type: warning, Reason: karpenter.ReasonZonalShiftActive, Exact: true}
	ZonalShiftCleared = Reason{Type: normal, Reason: karpenter.ReasonZonalShiftCleared, Exact: true}
	// PolicyUnreadable is Joist's own: Karpenter's NodePools have no such annotations.
	PolicyUnreadable = Reason{Type: warning, Reason: "PolicyUnreadable", RepeatAfter: 15 * time.Minute, Exact: true}
	// BudgetsUnreadable is Joist's own: Karpenter only logs this.
	BudgetsUnreadable = Reason{Type: warning, Reason: "BudgetsUnreadable", RepeatAfter: 15 * time.Minute, Exact: true}
	// DriftHalted is Joist's own: Karpenter's drift has no waves.
	DriftHalted = Reason{Type: warning, Reason: "DriftHalted", RepeatAfter: 15 * time.Minute, Exact: true}
	// NodeClaimRefused is Joist's own: Karpenter only logs this.
	NodeClaimRefused = Reason{Type: warning, Reason: "NodeClaimRefused", RepeatAfter: 5 * time.Minute}
	// LaunchNotVerified is Joist's own: Karpenter's one controller plans and launches.
	LaunchNotVerified = Reason{Type: warning, Reason: "LaunchNotVerified", RepeatAfter: 5 * time.Minute}
	// DeletionAwaitsApproval is Joist's own.
	DeletionAwaitsApproval = Reason{Type: warning, Reason: "DeletionAwaitsApproval", RepeatAfter: 15 * time.Minute}
)
