package disruption

import (
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// Move is a consolidation of nodes, counted for one NodePool.
type Move struct {
	Pool, Policy string
	// Approved reports that the move is proposed; otherwise a Balanced NodePool rejected it.
	Approved bool
	// Score is the score of the move for a Balanced NodePool. Scored reports that the NodePool is
	// Balanced.
	Score  float64
	Scored bool
}

// countApproved counts a move that is proposed for the first time.
func (p *evaluation) countApproved(a *attempt) {
	if a.Since.IsZero() && (a.Method == MultiNode || a.Method == SingleNode) {
		p.addMove(a, true)
	}
}

// countRejected counts a move that Balanced NodePools reject. Of rejected sets it counts only the
// last, and only if no set is found, because an evaluation tries many sets, as in Karpenter.
func (p *evaluation) countRejected(a *attempt) {
	switch {
	case !p.isNew:
	case a.Method == SingleNode:
		p.addMove(a, false)
	case a.Method == MultiNode:
		p.rejectedSet = a
	}
}

// countRejectedSet counts the rejected set after all sets have been tried.
func (p *evaluation) countRejectedSet() {
	if p.rejectedSet != nil && !slices.ContainsFunc(p.findings.Commands, func(c Command) bool { return c.Method == MultiNode }) {
		p.addMove(p.rejectedSet, false)
	}
}

// addMove counts a move for each of its NodePools. If a set is rejected, each NodePool has its own
// score.
func (p *evaluation) addMove(a *attempt, approved bool) {
	scores := map[string]float64{}
	for _, of := range p.scores.ScoreMove(a.nodes, a.SavedPerHour) {
		scores[of.Pool] = of.Score
	}
	counted := map[string]bool{}
	for _, c := range a.nodes {
		if pool := c.Node.NodePool; !counted[pool] {
			counted[pool] = true
			score, scored := scores[pool]
			p.findings.Metrics.Moves = append(p.findings.Metrics.Moves, Move{
				Pool: pool, Policy: string(c.Pool.Spec.Disruption.ConsolidationPolicy), Approved: approved, Score: score, Scored: scored,
			})
		}
	}
}

// countMoves records the metrics of moves. A NodePool approves a move if its own score is high
// enough, even if another NodePool rejects it.
func (s Service) countMoves(moves []Move) {
	decision := func(approved bool) string {
		if approved {
			return "approved"
		}
		return "rejected"
	}
	for _, m := range moves {
		s.Metrics.Record(metric.ConsolidationMoves, 1, decision(m.Approved), m.Pool, m.Policy)
		if m.Scored {
			enough := consolidation.Score{Pool: m.Pool, Score: m.Score}.IsEnough()
			s.Metrics.Record(metric.ConsolidationScore, m.Score, decision(enough), m.Pool, m.Policy)
		}
	}
}
