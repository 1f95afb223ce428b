package disruption

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Counted names a metric of an evaluation.
type Counted string

// The metrics, with their labels in brackets.
const (
	// EligibleNodes is how many nodes may be disrupted, regardless of budgets and pods' placement
	// [reason].
	EligibleNodes Counted = "eligible-nodes"
	// Timeouts counts evaluations in which a simulation reached its work limit [consolidation
	// type]. Zero is recorded too, so that the series exists before the first timeout.
	Timeouts Counted = "timeouts"
	// Evaluations is how long a method took, in seconds [reason, consolidation type]. Work that all
	// methods share, such as reading the snapshot, is not included.
	Evaluations Counted = "evaluations"
	// Moves counts consolidation moves [approved or rejected, NodePool, policy]. Scores are their
	// scores for Balanced NodePools.
	Moves  Counted = "moves"
	Scores Counted = "scores"
)

// EvaluationMetrics are the metrics of one evaluation.
type EvaluationMetrics struct {
	// Eligible counts nodes by the reason for which they may be disrupted.
	Eligible map[karpenter.DisruptionReason]int
	// Exhausted are the methods whose simulations reached the work limit.
	Exhausted map[Method]bool
	// Moves are the consolidation moves that were not proposed before.
	Moves []Move
}

// countEligible counts the nodes that may be disrupted, before any command is found.
func (p *evaluation) countEligible() {
	eligible := map[karpenter.DisruptionReason]int{}
	for i := range p.candidates {
		c := &p.candidates[i]
		isEligible := map[karpenter.DisruptionReason]bool{}
		for _, m := range []Method{Emptiness, Drift, StaticDrift, Expiration, SingleNode} {
			if m == Emptiness && !c.IsEmpty() || (m == Drift || m == StaticDrift) && c.Node.Drift == nil {
				continue
			}
			isEligible[m.budgetReason()] = isEligible[m.budgetReason()] || p.checkNode(m, c).IsNone()
		}
		for reason, ok := range isEligible {
			if ok {
				eligible[reason]++
			}
		}
	}
	p.findings.Metrics.Eligible = eligible
}

// countAttempt records the metrics of an attempt.
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

// evaluateTimed evaluates the snapshot and records the duration of each method.
func (s Service) evaluateTimed(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) Findings {
	return evaluateWith(snapshot, stock, s.Options, func(m Method, find func()) {
		began := s.Now()
		find()
		if s.Count != nil {
			s.Count(Evaluations, s.Now().Sub(began).Seconds(), m.budgetReason().Label(), karpenter.ConsolidationType(string(m)))
		}
	})
}

// countFindings records the metrics of an evaluation.
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
