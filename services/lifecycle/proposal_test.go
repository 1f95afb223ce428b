package lifecycle_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A proposal is written, confirmed no sooner than 15 s later, and only then acts.
func TestProposals(t *testing.T) {
	s := estate(t, 1)
	p, other := s.move("p", "old-0"), s.move("q", "old-0")
	p.Reason = string(karpenter.DisruptionReasonEmpty)
	p.take(event.Confirmed, fault.Stale)
	s.each(untouched, "old-0")
	p.take(event.Proposed, "")
	s.each("proposed ", "old-0")
	p.take(event.Confirmed, fault.Stale)
	s.each("proposed ", "old-0")
	other.take(event.Dropped, "")
	s.each("proposed ", "old-0")
	p.take(event.Dropped, "")
	s.each(untouched, "old-0")
	p.take(event.Proposed, "")
	written := s.now
	s.pass(planning.ConfirmAfter)
	version := s.Version()
	p.take(event.Proposed, "")
	if at := planning.ProposalOf(s.claim("old-0")).Proposed; !at.Equal(written) || s.Version() != version {
		t.Errorf("said again, it is from %s, not from %s", at, written)
	}
	p.take(event.Confirmed, "")
	s.each("going", "old-0")
}

// What is live counts more than the snapshot that confirmed.
func TestEmptyNoMore(t *testing.T) {
	s := estate(t, 1)
	p := s.move("p", "old-0")
	p.Reason = string(karpenter.DisruptionReasonEmpty)
	p.take(event.Proposed, "")
	s.pass(planning.ConfirmAfter)
	s.runs("old-0", "web")
	p.take(event.Confirmed, "")
	s.each(untouched, "old-0")
}
