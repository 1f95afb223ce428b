package disruption

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// shouldDefer reports whether a set is for a later pass, and remembers it: it saves less for
// each pod than what is fair, which is what moving one saves on average if everything
// that is wasted goes, and other sets are on their way. What comes up for those has
// room that nobody may count on yet, so that a later pass often saves more with the
// same pods. Where nothing is on its way nothing gets better by waiting: such a set has
// its turn then.
func (p *evaluation) shouldDefer(a *attempt, fair float64) bool {
	if a.SavedPerHour >= fair*float64(a.PodsMoved) || !p.hasFound(MultiNode) && !p.areReplacementsComing() {
		return false
	}
	p.hasDeferred = true
	return true
}

// hasFound reports whether a method has found anything in this pass, or has its word kept.
func (p *evaluation) hasFound(m Method) bool {
	return slices.ContainsFunc(p.findings.Commands, func(c Command) bool { return c.Method == m })
}

// areReplacementsComing reports whether a node is launched for others that consolidation replaces, and
// is not initialized. That ends by itself: lifecycle gives up on what does not come.
func (p *evaluation) areReplacementsComing() bool {
	up := map[string]bool{}
	for i := range p.snapshot.Nodes {
		if n := &p.snapshot.Nodes[i]; n.Initialized {
			up[n.Claim] = true
		}
	}
	return slices.ContainsFunc(p.snapshot.Nodes, func(n planning.Node) bool {
		return n.Proposal != nil && n.Proposal.Reason == string(karpenter.DisruptionReasonUnderutilized) &&
			slices.ContainsFunc(n.Proposal.Replacements, func(claim string) bool { return !up[claim] })
	})
}
