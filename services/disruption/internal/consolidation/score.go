package consolidation

import (
	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Score is what a move is worth to one Balanced pool.
type Score struct {
	Pool  string
	Score float64
}

// IsEnough reports whether the pool lets it go ahead.
func (s Score) IsEnough() bool { return s.Score >= minScore }

// minScore is the score that a Balanced pool asks for.
const minScore = 1 / float64(karpenter.BalancedK)

// ScoreMove scores a move for each Balanced pool that has nodes in it, in the order of the
// nodes. What is saved is shared out among the pools by what their nodes cost.
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
		part, open := price[pool]
		if delete(price, pool); !open || c.Pool.Spec.Disruption.ConsolidationPolicy != karpenter.ConsolidationPolicyBalanced || s.price[pool] <= 0 || all <= 0 {
			continue
		}
		out = append(out, Score{pool, saved * part / all / s.price[pool] / (cost[pool] / s.cost[pool])})
	}
	return out
}
