// Package disruption decides whether a confirmed disruption proposal may begin, and
// whether a proposal that has begun continues, ends or is rolled back. It is pure.
//
// The invariants:
//
//   - A proposal begins only if the live state allows the removal of each of its
//     nodes, and the budgets of all its NodePools allow it in addition to the nodes
//     that are already being removed.
//   - A proposal ends only when all replacements are initialized at the same moment.
//   - A value that cannot be read forbids the disruption.
package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Progress is how a proposal that acts stands.
type Progress string

const (
	// Waiting says that a replacement is not initialized yet.
	Waiting Progress = "waiting"
	// Ready says that the old claims may go.
	Ready Progress = "ready"
	// Failed says that it is to be rolled back.
	Failed Progress = "failed"
)

const (
	// AdmissionTime is how long after its confirmation a proposal may be on its way
	// through the door; its message does not live longer.
	AdmissionTime = 2 * time.Minute
	// What a proposal may take grows with how many there are: as many are a load to
	// EC2.
	shortest, longest, each = 10 * time.Minute, time.Hour, 80 * time.Millisecond
)

// ReplacementTimeout is how long a proposal may wait for its replacements while so many act.
func ReplacementTimeout(acting int) time.Duration {
	return min(max(each*time.Duration(acting), shortest), longest)
}

// WithinTimeout reports whether a proposal is young enough that its replacements are kept
// for its pods, at the longest.
func WithinTimeout(p planning.Proposal, now time.Time) bool { return now.Sub(p.Confirmed) < longest }

// ProposalView is what the verdict about one proposal looks at.
type ProposalView struct {
	Proposal planning.Proposal
	// Replacement finds a claim; nil when there is none.
	Replacement func(name string) *karpenter.NodeClaim
	// Coming reports whether a claim that is not there may still be created.
	Coming func(name string) bool
	// Acting is how many proposals act at the time.
	Acting int
	Now    time.Time
}

// AssessProgress gives the verdict, and in words what it rests on unless it is Ready.
func AssessProgress(v ProposalView) (Progress, string) {
	waits := ""
	for _, name := range v.Proposal.Replacements {
		c := v.Replacement(name)
		switch {
		case c == nil && !v.Coming(name):
			return Failed, fmt.Sprintf("replacement NodeClaim %s is gone", name)
		case c != nil && c.DeletionTimestamp != nil:
			return Failed, fmt.Sprintf("replacement NodeClaim %s is being deleted", name)
		case c == nil || !c.Status.Conditions.True(karpenter.ConditionTypeInitialized):
			waits = fmt.Sprintf("replacement NodeClaim %s is not initialized", name)
		}
	}
	limit := ReplacementTimeout(v.Acting)
	switch {
	case waits == "":
		return Ready, ""
	case v.Now.Sub(v.Proposal.Confirmed) > limit:
		return Failed, fmt.Sprintf("%s after %s", waits, limit)
	default:
		return Waiting, waits
	}
}

// BudgetedReason reports whether budgets can be counted by the reason.
func BudgetedReason(reason string) bool {
	switch karpenter.DisruptionReason(reason) {
	case karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnderutilized:
		return true
	default:
		return false
	}
}

// ActingProposal is the proposal on the claim if it has begun to act, or nil.
func ActingProposal(c *karpenter.NodeClaim) *planning.Proposal {
	if c.Annotations[planning.ProposalAnnotation] == "" {
		return nil
	}
	if p := planning.ProposalOf(c); p != nil && !p.Confirmed.IsZero() {
		return p
	}
	return nil
}

// HasBegun reports whether the proposal acts on each of its claims, with exactly these
// replacements.
func HasBegun(claims []*karpenter.NodeClaim, replacements []string) bool {
	return !slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		p := ActingProposal(c)
		return p == nil || !slices.Equal(p.Replacements, replacements)
	})
}

// BegunOtherwise reports whether the proposal acts on some claim already, with other
// replacements than these.
func BegunOtherwise(claims []*karpenter.NodeClaim, replacements []string) bool {
	return slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		p := ActingProposal(c)
		return p != nil && !slices.Equal(p.Replacements, replacements)
	})
}
