package disruption

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Counted is a figure of a look at a snapshot that somebody may watch.
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
	// Evaluations is how long a method had its turn, in seconds [the reason, the
	// consolidation type]. What all methods share, such as reading the snapshot, is in none
	// of them.
	Evaluations Counted = "evaluations"
	// Moves are the moves of consolidation that were weighed [approved or rejected, the
	// NodePool, its policy], and Scores what they were worth to Balanced pools.
	Moves  Counted = "moves"
	Scores Counted = "scores"
)

// Tally is what a look counts beside its findings.
type Tally struct {
	// Eligible are nodes by the reason for which they may go.
	Eligible map[karpenter.DisruptionReason]int
	// Exhausted are the methods of which some simulation ended before its work was
	// done.
	Exhausted map[Method]bool
	// Moves are what consolidation weighed of which nothing was proposed before.
	Moves []Move
}

// tally counts the nodes that may go as far as they are concerned themselves. It is
// asked before any is taken.
func (p *pass) tally() {
	eligible := map[karpenter.DisruptionReason]int{}
	for i := range p.candidates {
		c := &p.candidates[i]
		may := map[karpenter.DisruptionReason]bool{}
		for _, m := range []Method{Emptiness, Drift, StaticDrift, Expiration, SingleNode} {
			if m == Emptiness && !c.Empty() || (m == Drift || m == StaticDrift) && c.Node.Drift == nil {
				continue
			}
			may[m.reason()] = may[m.reason()] || p.objection(m, c).None()
		}
		for reason, free := range may {
			if free {
				eligible[reason]++
			}
		}
	}
	p.findings.Tally.Eligible = eligible
}

// tried counts an attempt.
func (p *pass) tried(a *attempt) {
	if a.objection.Rule == consolidation.RuleBalanced {
		p.rejected(a)
	}
	if !a.Result.Partial {
		return
	}
	if p.findings.Tally.Exhausted == nil {
		p.findings.Tally.Exhausted = map[Method]bool{}
	}
	p.findings.Tally.Exhausted[a.Method] = true
}

// measured is evaluate with the time that each method takes told.
func (s Service) measured(snapshot planning.Snapshot, stock instancetypes.Stock) Findings {
	return evaluate(snapshot, stock, s.Options, func(m Method, find func()) {
		began := s.Now()
		find()
		if s.Count != nil {
			s.Count(Evaluations, s.Now().Sub(began).Seconds(), m.reason().Label(), karpenter.ConsolidationType(string(m)))
		}
	})
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
	s.countMoves(t.Moves)
	for _, m := range []Method{MultiNode, SingleNode} {
		s.Count(Timeouts, 0, karpenter.ConsolidationType(string(m)))
	}
}
