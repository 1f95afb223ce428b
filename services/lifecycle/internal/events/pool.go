package events

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About NodePools, and the health of their nodes.
var (
	NodeRepairBlocked = Reason{Type: warning, Reason: karpenter.ReasonNodeRepairBlocked, RepeatAfter: 15 * time.Minute}
	// A shift of each zone is another Event.
	ZonalShiftActive  = Reason{Type: warning, Reason: karpenter.ReasonZonalShiftActive, Exact: true}
	ZonalShiftCleared = Reason{Type: normal, Reason: karpenter.ReasonZonalShiftCleared, Exact: true}
	// PolicyUnreadable is Joist's own: Karpenter's pools have no policy beside their spec.
	PolicyUnreadable = Reason{Type: warning, Reason: "PolicyUnreadable", RepeatAfter: 15 * time.Minute, Exact: true}
	// BudgetsUnreadable is Joist's own: Karpenter says it in its log alone.
	BudgetsUnreadable = Reason{Type: warning, Reason: "BudgetsUnreadable", RepeatAfter: 15 * time.Minute, Exact: true}
	// DriftHalted is Joist's own: Karpenter's drift goes on whatever comes of it.
	DriftHalted = Reason{Type: warning, Reason: "DriftHalted", RepeatAfter: 15 * time.Minute, Exact: true}
	// NodeClaimRefused is Joist's own: Karpenter says it in its log alone.
	NodeClaimRefused = Reason{Type: warning, Reason: "NodeClaimRefused", RepeatAfter: 5 * time.Minute}
	// LaunchNotVerified is Joist's own: Karpenter's one controller plans and launches.
	LaunchNotVerified = Reason{Type: warning, Reason: "LaunchNotVerified", RepeatAfter: 5 * time.Minute}
	// DeletionAwaitsApproval is Joist's own.
	DeletionAwaitsApproval = Reason{Type: warning, Reason: "DeletionAwaitsApproval", RepeatAfter: 15 * time.Minute}
)
