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

// Objection is why a move is not worth it to some Balanced pool.
func (s Scores) Objection(nodes []*candidate.Candidate, saved float64) candidate.Objection {
	for _, of := range s.Of(nodes, saved) {
		if !of.Enough() {
			return candidate.Objection{Rule: RuleBalanced, Detail: fmt.Sprintf(
				"it saves too little for the pods that it moves: its score is %.2f, and NodePool %s asks for %.2f", of.Score, of.Pool, scoreLeast)}
		}
	}
	return candidate.Objection{}
}
