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

// EvaluationMetrics is what a look counts beside its findings.
type EvaluationMetrics struct {
	// Eligible are nodes by the reason for which they may go.
	Eligible map[karpenter.DisruptionReason]int
	// Exhausted are the methods of which some simulation ended before its work was
	// done.
	Exhausted map[Method]bool
	// Moves are what consolidation weighed of which nothing was proposed before.
	Moves []Move
}

// countEligible counts the nodes that may go as far as they are concerned themselves. It is
// asked before any is taken.
func (p *evaluation) countEligible() {
	eligible := map[karpenter.DisruptionReason]int{}
	for i := range p.candidates {
		c := &p.candidates[i]
		may := map[karpenter.DisruptionReason]bool{}
		for _, m := range []Method{Emptiness, Drift, StaticDrift, Expiration, SingleNode} {
			if m == Emptiness && !c.IsEmpty() || (m == Drift || m == StaticDrift) && c.Node.Drift == nil {
				continue
			}
			may[m.budgetReason()] = may[m.budgetReason()] || p.checkNode(m, c).IsNone()
		}
		for reason, free := range may {
			if free {
				eligible[reason]++
			}
		}
	}
	p.findings.Metrics.Eligible = eligible
}

// countAttempt counts an attempt.
func (p *evaluation) countAttempt(a *attempt) {
	if a.objection.Rule == consolidation.RuleBalanced {
		p.countRejected(a)
	}
	if !a.Result.Partial {
		return
	}
	if p.findings.Metrics.Exhausted == nil {
		p.findings.Metrics.Exhausted = map[Method]bool{}
	}
	p.findings.Metrics.Exhausted[a.Method] = true
}

// evaluateTimed is evaluate with the time that each method takes told.
func (s Service) evaluateTimed(snapshot planning.Snapshot, stock instancetypes.Stock) Findings {
	return evaluateWith(snapshot, stock, s.Options, func(m Method, find func()) {
		began := s.Now()
		find()
		if s.Count != nil {
			s.Count(Evaluations, s.Now().Sub(began).Seconds(), m.budgetReason().Label(), karpenter.ConsolidationType(string(m)))
		}
	})
}

// countFindings tells what was tallied, to whoever listens.
func (s Service) countFindings(t EvaluationMetrics) {
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
