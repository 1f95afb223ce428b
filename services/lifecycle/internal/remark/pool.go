package remark

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// About NodePools, and the health of their nodes.
var (
	NodeRepairBlocked = Remark{Type: warning, Reason: karpenter.ReasonNodeRepairBlocked, Every: 15 * time.Minute}
	// A shift of each zone is another Event (B183).
	ZonalShiftActive  = Remark{Type: warning, Reason: karpenter.ReasonZonalShiftActive, Exact: true}
	ZonalShiftCleared = Remark{Type: normal, Reason: karpenter.ReasonZonalShiftCleared, Exact: true}
	// PolicyUnreadable is Joist's own: Karpenter's pools have no policy beside their spec.
	PolicyUnreadable = Remark{Type: warning, Reason: "PolicyUnreadable", Every: 15 * time.Minute, Exact: true}
	// BudgetsUnreadable is Joist's own: Karpenter says it in its log alone.
	BudgetsUnreadable = Remark{Type: warning, Reason: "BudgetsUnreadable", Every: 15 * time.Minute, Exact: true}
	// DriftHalted is Joist's own: Karpenter's drift goes on whatever comes of it.
	DriftHalted = Remark{Type: warning, Reason: "DriftHalted", Every: 15 * time.Minute, Exact: true}
	// NodeClaimRefused is Joist's own: Karpenter says it in its log alone.
	NodeClaimRefused = Remark{Type: warning, Reason: "NodeClaimRefused", Every: 5 * time.Minute}
	// LaunchNotVerified is Joist's own: Karpenter's one controller plans and launches.
	LaunchNotVerified = Remark{Type: warning, Reason: "LaunchNotVerified", Every: 5 * time.Minute}
	// DeletionAwaitsApproval is Joist's own (user ask 15).
	DeletionAwaitsApproval = Remark{Type: warning, Reason: "DeletionAwaitsApproval", Every: 15 * time.Minute}
)
