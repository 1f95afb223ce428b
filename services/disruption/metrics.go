package disruption

import (
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
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
	if p.repairs.matcher != nil {
		eligible[karpenter.DisruptionReasonUnhealthy] = 0
	}
	for i := range p.candidates {
		c := &p.candidates[i]
		isEligible := map[karpenter.DisruptionReason]bool{}
		for _, m := range []Method{Repair, Emptiness, Drift, StaticDrift, Expiration, SingleNode} {
			if m == Repair && c.Node.Unhealthy == nil || m == Emptiness && !c.IsEmpty() || (m == Drift || m == StaticDrift) && c.Node.Drift == nil {
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
		s.Metrics.Record(metric.EvaluationTime, s.Now().Sub(began).Seconds(), m.budgetReason().Label(), karpenter.ConsolidationType(string(m)))
	})
}

// countFindings records the metrics of an evaluation.
func (s Service) countFindings(t EvaluationMetrics) {
	for _, reason := range []karpenter.DisruptionReason{karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnderutilized} {
		s.Metrics.Record(metric.Eligible, float64(t.Eligible[reason]), reason.Label())
	}
	if n, isOn := t.Eligible[karpenter.DisruptionReasonUnhealthy]; isOn {
		s.Metrics.Record(metric.Eligible, float64(n), karpenter.DisruptionReasonUnhealthy.Label())
	}
	for _, m := range slices.Sorted(maps.Keys(t.Exhausted)) {
		s.Metrics.Record(metric.Timeouts, 1, karpenter.ConsolidationType(string(m)))
	}
	s.countMoves(t.Moves)
	// Zero makes the series exist before the first timeout.
	for _, m := range []Method{MultiNode, SingleNode} {
		s.Metrics.Record(metric.Timeouts, 0, karpenter.ConsolidationType(string(m)))
	}
}
