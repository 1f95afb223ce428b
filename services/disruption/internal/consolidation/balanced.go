package consolidation

import (
	"fmt"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
)

// Scores weigh moves in pools with the Balanced policy: the part of the pool's cost
// that a move saves against the part of all disturbance that it causes.
type Scores struct {
	price, cost map[string]float64
}

// NewScores adds up what the nodes of each pool cost, and cost to disturb. Nodes
// that must stay count as well.
func NewScores(all []candidate.Candidate) Scores {
	out := Scores{price: map[string]float64{}, cost: map[string]float64{}}
	for i := range all {
		out.price[all[i].Node.NodePool] += all[i].Price
		out.cost[all[i].Node.NodePool] += all[i].Cost
	}
	return out
}

// CheckScores is why a move is not worth it to some Balanced pool.
func (s Scores) CheckScores(nodes []*candidate.Candidate, saved float64) candidate.Objection {
	for _, of := range s.ScoreMove(nodes, saved) {
		if !of.IsEnough() {
			return candidate.Objection{Rule: RuleBalanced, Detail: fmt.Sprintf(
				"it saves too little for the pods that it moves: its score is %.2f, and NodePool %s asks for %.2f", of.Score, of.Pool, minScore)}
		}
	}
	return candidate.Objection{}
}
