// Package saga decides about disruption proposals that act: whether a confirmed
// one may begin, and whether one that has begun goes on, ends or is rolled back
// (B145, B152, B160, B164). It is pure.
//
// The invariants:
//
//   - A proposal begins only if every node of it may go by what is live, and the
//     budgets of all its pools have room for it beside what goes already.
//   - Nothing is over before every replacement is initialized at the same moment.
//   - Whatever cannot be understood forbids.
package saga

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Verdict is how a proposal that acts stands.
type Verdict string

const (
	// Waiting says that a replacement is not initialized yet.
	Waiting Verdict = "waiting"
	// Ready says that the old claims may go.
	Ready Verdict = "ready"
	// Failed says that it is to be rolled back.
	Failed Verdict = "failed"
)

const (
	// PassTime is how long after its confirmation a proposal may be on its way
	// through the door; its message does not live longer.
	PassTime = 2 * time.Minute
	// What a proposal may take grows with how many there are: as many are a load to
	// EC2 (B164).
	shortest, longest, each = 10 * time.Minute, time.Hour, 80 * time.Millisecond
)

// Limit is how long a proposal may wait for its replacements while so many act
// (B164).
func Limit(acting int) time.Duration {
	return min(max(each*time.Duration(acting), shortest), longest)
}

// Lasts reports whether a proposal is young enough that its replacements are kept
// for its pods, at the longest.
func Lasts(p scheduling.Proposal, now time.Time) bool { return now.Sub(p.Confirmed) < longest }

// View is what the verdict about one proposal looks at.
type View struct {
	Proposal scheduling.Proposal
	// Replacement finds a claim; nil when there is none.
	Replacement func(name string) *karpenter.NodeClaim
	// Coming reports whether a claim that is not there may still be created.
	Coming func(name string) bool
	// Acting is how many proposals act at the time.
	Acting int
	Now    time.Time
}

// Judge gives the verdict, and in words what it rests on unless it is Ready.
func Judge(v View) (Verdict, string) {
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
	limit := Limit(v.Acting)
	switch {
	case waits == "":
		return Ready, ""
	case v.Now.Sub(v.Proposal.Confirmed) > limit:
		return Failed, fmt.Sprintf("%s after %s", waits, limit)
	default:
		return Waiting, waits
	}
}

// Known reports whether budgets can be counted by the reason.
func Known(reason string) bool {
	switch karpenter.DisruptionReason(reason) {
	case karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnderutilized:
		return true
	default:
		return false
	}
}

// Acting is the proposal on the claim if it has begun to act, or nil.
func Acting(c *karpenter.NodeClaim) *scheduling.Proposal {
	if c.Annotations[scheduling.ProposalAnnotation] == "" {
		return nil
	}
	if p := scheduling.ProposalOf(c); p != nil && !p.Confirmed.IsZero() {
		return p
	}
	return nil
}

// Begun reports whether the proposal acts on each of its claims, with exactly these
// replacements.
func Begun(claims []*karpenter.NodeClaim, replacements []string) bool {
	return !slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		p := Acting(c)
		return p == nil || !slices.Equal(p.Replacements, replacements)
	})
}

// Otherwise reports whether the proposal acts on some claim already, with other
// replacements than these.
func Otherwise(claims []*karpenter.NodeClaim, replacements []string) bool {
	return slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		p := Acting(c)
		return p != nil && !slices.Equal(p.Replacements, replacements)
	})
}
