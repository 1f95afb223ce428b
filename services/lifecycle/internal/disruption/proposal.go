// Package disruption decides whether a confirmed disruption proposal may start, and whether a
// started proposal continues, ends or is rolled back. It is pure.
//
// The invariants:
//   - A proposal starts only if the live state allows the removal of each of its nodes, and the budgets
//     of all its NodePools allow it in addition to the nodes that are already being removed.
//   - A proposal ends only when all replacements are initialized at the same time.
//   - A value that cannot be parsed forbids the disruption.
package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Progress is the state of a started proposal.
type Progress string

const (
	// Waiting means that a replacement is not initialized yet.
	Waiting Progress = "waiting"
	// Ready means that the old claims may be deleted.
	Ready Progress = "ready"
	// Failed means that the proposal must be rolled back.
	Failed Progress = "failed"
)

// The timeout grows with the number of started proposals, because EC2 needs longer for many.
const (
	minReplacementTimeout, maxReplacementTimeout, timeoutPerProposal = 10 * time.Minute, time.Hour, 80 * time.Millisecond
)

// ReplacementTimeout returns how long a proposal may wait for its replacements while this many
// proposals are in progress.
func ReplacementTimeout(acting int) time.Duration {
	return min(max(timeoutPerProposal*time.Duration(acting), minReplacementTimeout), maxReplacementTimeout)
}

// WithinTimeout reports whether a proposal is young enough that its replacements are still
// nominated for its pods.
func WithinTimeout(p planning.Proposal, now time.Time) bool {
	return now.Sub(p.ConfirmedAt) < maxReplacementTimeout
}

// ProposalView is the input of AssessProgress.
type ProposalView struct {
	Proposal planning.Proposal
	// Replacement returns a claim, or nil.
	Replacement func(name string) *karpenter.NodeClaim
	// MayBeCreated reports whether a missing claim may still be created.
	MayBeCreated func(name string) bool
	// Acting is how many proposals are in progress.
	Acting int
	Now    time.Time
}

// AssessProgress returns the progress, and its reason unless it is Ready.
func AssessProgress(v ProposalView) (Progress, string) {
	waits := ""
	for _, name := range v.Proposal.Replacements {
		c := v.Replacement(name)
		switch {
		case c == nil && !v.MayBeCreated(name):
			return Failed, fmt.Sprintf("replacement NodeClaim %s is gone", name)
		case c != nil && c.DeletionTimestamp != nil:
			return Failed, fmt.Sprintf("replacement NodeClaim %s is being deleted", name)
		case c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized):
			waits = fmt.Sprintf("replacement NodeClaim %s is not initialized", name)
		}
	}
	limit := ReplacementTimeout(v.Acting)
	switch {
	case waits == "":
		return Ready, ""
	case v.Now.Sub(v.Proposal.ConfirmedAt) > limit:
		return Failed, fmt.Sprintf("%s after %s", waits, limit)
	default:
		return Waiting, waits
	}
}

// BudgetedReason reports whether budgets apply to the reason.
func BudgetedReason(reason string) bool {
	switch karpenter.DisruptionReason(reason) {
	case karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnderutilized, karpenter.DisruptionReasonUnhealthy:
		return true
	default:
		return false
	}
}

// ActingProposal returns the proposal on the claim if it has started, or nil.
func ActingProposal(c *karpenter.NodeClaim) *planning.Proposal {
	if c.Annotations[planning.ProposalAnnotation] == "" {
		return nil
	}
	if p := planning.ReadProposal(c); p != nil && !p.ConfirmedAt.IsZero() {
		return p
	}
	return nil
}

// isReserved reports whether the claim is reserved for the confirmation of its proposal, except by
// an own reservation.
func isReserved(c *karpenter.NodeClaim, own func(*karpenter.NodeClaim) bool) bool {
	return c.Annotations[planning.ReservationAnnotation] != "" && planning.ReadProposal(c) != nil && !own(c)
}

// HasBegun reports whether the proposal has started on each of its claims, with exactly these
// replacements.
func HasBegun(claims []*karpenter.NodeClaim, replacements []string) bool {
	return !slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		p := ActingProposal(c)
		return p == nil || !slices.Equal(p.Replacements, replacements)
	})
}

// HasOtherReplacements reports whether the proposal has started on a claim with other replacements.
func HasOtherReplacements(claims []*karpenter.NodeClaim, replacements []string) bool {
	return slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		p := ActingProposal(c)
		return p != nil && !slices.Equal(p.Replacements, replacements)
	})
}
