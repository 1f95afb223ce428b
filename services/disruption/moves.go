package disruption

import (
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
)

// Move is a move of consolidation as far as one NodePool goes.
type Move struct {
	Pool, Policy string
	// Approved says that it is proposed: else some Balanced pool refused it.
	Approved bool
	// Score is what it is worth to a Balanced pool, where Scored says that it is one.
	Score  float64
	Scored bool
}

// countApproved counts a move that is proposed for the first time.
func (p *evaluation) countApproved(a *attempt) {
	if a.Since.IsZero() && (a.Method == MultiNode || a.Method == SingleNode) {
		p.addMove(a, true)
	}
}

// countRejected counts a move that Balanced pools refuse. Of sets only the last counts, and
// only where none is found: many are tried on the way to one, as upstream does.
func (p *evaluation) countRejected(a *attempt) {
	switch {
	case !p.isNew:
	case a.Method == SingleNode:
		p.addMove(a, false)
	case a.Method == MultiNode:
		p.rejectedSet = a
	}
}

// countRejectedSet counts the set that was refused, once all sets have been tried.
func (p *evaluation) countRejectedSet() {
	if p.rejectedSet != nil && !slices.ContainsFunc(p.findings.Commands, func(c Command) bool { return c.Method == MultiNode }) {
		p.addMove(p.rejectedSet, false)
	}
}

// addMove counts a move for each of its pools. Where a set is refused each pool has
// what it is worth to itself.
func (p *evaluation) addMove(a *attempt, approved bool) {
	scores := map[string]float64{}
	for _, of := range p.scores.ScoreMove(a.nodes, a.SavedPerHour) {
		scores[of.Pool] = of.Score
	}
	told := map[string]bool{}
	for _, c := range a.nodes {
		if pool := c.Node.NodePool; !told[pool] {
			told[pool] = true
			score, scored := scores[pool]
			p.findings.Metrics.Moves = append(p.findings.Metrics.Moves, Move{
				Pool: pool, Policy: string(c.Pool.Spec.Disruption.ConsolidationPolicy), Approved: approved, Score: score, Scored: scored,
			})
		}
	}
}

// countMoves tells what was weighed, to whoever listens. A pool to which a move is worth
// enough has approved it, though another refuses.
func (s Service) countMoves(moves []Move) {
	decision := func(approved bool) string {
		if approved {
			return "approved"
		}
		return "rejected"
	}
	for _, m := range moves {
		s.Count(Moves, 1, decision(m.Approved), m.Pool, m.Policy)
		if m.Scored {
			enough := consolidation.Score{Pool: m.Pool, Score: m.Score}.IsEnough()
			s.Count(Scores, m.Score, decision(enough), m.Pool, m.Policy)
		}
	}
}
