package consolidation

import (
	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Score is the score of a move for one Balanced NodePool.
type Score struct {
	Pool  string
	Score float64
}

// IsEnough reports whether the NodePool allows the move.
func (s Score) IsEnough() bool { return s.Score >= minScore }

// minScore is the score that a Balanced NodePool requires.
const minScore = 1 / float64(karpenter.BalancedK)

// ScoreMove returns the scores of a move for each Balanced NodePool of its nodes, in the order of
// the nodes. The saving is divided among the NodePools in proportion to the prices of their nodes.
func (s Scores) ScoreMove(nodes []*candidate.Candidate, saved float64) []Score {
	price, cost, all := map[string]float64{}, map[string]float64{}, 0.0
	for _, c := range nodes {
		price[c.Node.NodePool] += c.Price
		cost[c.Node.NodePool] += c.Cost
		all += c.Price
	}
	var out []Score
	for _, c := range nodes {
		pool := c.Node.NodePool
		part, isFirst := price[pool]
		if delete(price, pool); !isFirst || c.Pool.Spec.Disruption.ConsolidationPolicy != karpenter.ConsolidationPolicyBalanced || s.price[pool] <= 0 || all <= 0 {
			continue
		}
		out = append(out, Score{pool, saved * part / all / s.price[pool] / (cost[pool] / s.cost[pool])})
	}
	return out
}
