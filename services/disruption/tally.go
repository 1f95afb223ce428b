package disruption

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Counted is a figure of a look at a snapshot that somebody may watch (B165).
type Counted string

// What is counted, with its labels in brackets.
const (
	// EligibleNodes is how many nodes may go as far as they are concerned themselves
	// [the reason].
	EligibleNodes Counted = "eligible-nodes"
	// Timeouts is a look in which the work that a simulation may take did not suffice
	// for all pods [the consolidation type]. Nought is counted as well, so that the series
	// is there before it happens.
	Timeouts Counted = "timeouts"
)

// Tally is what a look counts beside its findings.
type Tally struct {
	// Eligible are nodes by the reason for which they may go.
	Eligible map[karpenter.DisruptionReason]int
	// Exhausted are the methods of which some simulation ended before its work was
	// done.
	Exhausted map[Method]bool
}

// tally counts the nodes that may go as far as they are concerned themselves. It is
// asked before any is taken.
func (p *pass) tally() {
	eligible := map[karpenter.DisruptionReason]int{}
	for i := range p.candidates {
		c := &p.candidates[i]
		for _, m := range []Method{Emptiness, Drift, StaticDrift, SingleNode} {
			if m == Emptiness && !c.Empty() || (m == Drift || m == StaticDrift) && c.Node.Drift == nil {
				continue
			}
			if p.objection(m, c).None() {
				eligible[m.reason()]++
			}
		}
	}
	p.findings.Tally.Eligible = eligible
}

// tried counts an attempt.
func (p *pass) tried(a *attempt) {
	if !a.Result.Partial {
		return
	}
	if p.findings.Tally.Exhausted == nil {
		p.findings.Tally.Exhausted = map[Method]bool{}
	}
	p.findings.Tally.Exhausted[a.Method] = true
}

// count tells what was tallied, to whoever listens.
func (s Service) count(t Tally) {
	if s.Count == nil {
		return
	}
	for _, reason := range []karpenter.DisruptionReason{karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnderutilized} {
		s.Count(EligibleNodes, float64(t.Eligible[reason]), reason.Label())
	}
	for _, m := range slices.Sorted(maps.Keys(t.Exhausted)) {
		s.Count(Timeouts, 1, karpenter.ConsolidationType(string(m)))
	}
	for _, m := range []Method{MultiNode, SingleNode} {
		s.Count(Timeouts, 0, karpenter.ConsolidationType(string(m)))
	}
}
