package lifecycle_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A proposal is written, is confirmed 15 s later at the earliest, and is executed only then.
func TestProposalPhases(t *testing.T) {
	s := newInitializedCluster(t, 1)
	p, other := s.newProposal("p", "old-0"), s.newProposal("q", "old-0")
	p.Reason = string(karpenter.DisruptionReasonEmpty)
	p.deliver(event.Confirmed, fault.Stale)
	s.expectStates(stateUntouched, "old-0")
	p.deliver(event.Proposed, "")
	s.expectStates("proposed ", "old-0")
	p.deliver(event.Confirmed, fault.Stale)
	s.expectStates("proposed ", "old-0")
	other.deliver(event.Dropped, "")
	s.expectStates("proposed ", "old-0")
	p.deliver(event.Dropped, "")
	s.expectStates(stateUntouched, "old-0")
	p.deliver(event.Proposed, "")
	written := s.now
	s.advance(planning.ConfirmAfter)
	version := s.Version()
	p.deliver(event.Proposed, "")
	if at := planning.ReadProposal(s.getClaim("old-0")).ProposedAt; !at.Equal(written) || s.Version() != version {
		t.Errorf("after a repeated message the proposal is from %s, want %s", at, written)
	}
	p.deliver(event.Confirmed, "")
	s.expectStates("going", "old-0")
}

// The live state takes precedence over the snapshot.
func TestNodeNoLongerEmpty(t *testing.T) {
	s := newInitializedCluster(t, 1)
	p := s.newProposal("p", "old-0")
	p.Reason = string(karpenter.DisruptionReasonEmpty)
	p.deliver(event.Proposed, "")
	s.advance(planning.ConfirmAfter)
	s.addPod("old-0", "web")
	p.deliver(event.Confirmed, "")
	s.expectStates(stateUntouched, "old-0")
}
