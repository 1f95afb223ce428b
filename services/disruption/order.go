package disruption

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// shouldDefer reports whether a set has to wait for a later evaluation, and records it. A set waits
// if it saves less per pod than fairSaving and other sets are in progress. fairSaving is the
// average saving per moved pod if all waste were removed. The other sets' new nodes will have free
// capacity that cannot be used yet, so a later evaluation often saves more with the same pods. If
// no set is in progress, waiting has no benefit.
func (p *evaluation) shouldDefer(a *attempt, fairSaving float64) bool {
	if a.SavedPerHour >= fairSaving*float64(a.PodsMoved) || !p.hasFound(MultiNode) && !p.areReplacementsComing() {
		return false
	}
	p.hasDeferred = true
	return true
}

// hasFound reports whether this evaluation has a command of the method, new or retried.
func (p *evaluation) hasFound(m Method) bool {
	return slices.ContainsFunc(p.findings.Commands, func(c Command) bool { return c.Method == m })
}

// areReplacementsComing reports whether a replacement that consolidation launched is not
// initialized yet, or will be created. Lifecycle's timeout limits how long that lasts. A replacement
// that has ended is not coming, although the node that it replaced may still drain.
func (p *evaluation) areReplacementsComing() bool {
	nodes := map[string]*planning.Node{}
	for i := range p.snapshot.Nodes {
		nodes[p.snapshot.Nodes[i].Claim] = &p.snapshot.Nodes[i]
	}
	return slices.ContainsFunc(p.snapshot.Nodes, func(n planning.Node) bool {
		return n.Proposal != nil && n.Proposal.Reason == string(karpenter.DisruptionReasonUnderutilized) &&
			slices.ContainsFunc(n.Proposal.Replacements, func(claim string) bool {
				replacement := nodes[claim]
				if replacement == nil && n.Proposal.MayBeAdmitted(p.snapshot.TakenAt) {
					p.expectChange(n.Proposal.ConfirmedAt.Add(planning.AdmissionTime))
					return true
				}
				return replacement != nil && !replacement.Initialized
			})
	})
}
