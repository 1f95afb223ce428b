package consolidation

import (
	"fmt"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
)

// Scores has the totals with which moves of Balanced NodePools are compared: the score is the
// move's share of the NodePool's price divided by its share of the disruption cost.
type Scores struct {
	price, cost map[string]float64
}

// NewScores sums the prices and disruption costs of each NodePool's nodes, including nodes that
// cannot be disrupted.
func NewScores(all []candidate.Candidate) Scores {
	out := Scores{price: map[string]float64{}, cost: map[string]float64{}}
	for i := range all {
		out.price[all[i].Node.NodePool] += all[i].Price
		out.cost[all[i].Node.NodePool] += all[i].Cost
	}
	return out
}

// CheckScores objects to a move whose score is too low for a Balanced NodePool.
func (s Scores) CheckScores(nodes []*candidate.Candidate, saved float64) candidate.Objection {
	for _, score := range s.ScoreMove(nodes, saved) {
		if !score.IsEnough() {
			return candidate.Objection{Rule: RuleBalanced, Detail: fmt.Sprintf(
				"it saves too little for the pods that it moves: its score is %.2f, and NodePool %s requires %.2f", score.Score, score.Pool, minScore)}
		}
	}
	return candidate.Objection{}
}
