package disruption

import "github.com/joist-autoscaler/joist/services/disruption/internal/restraint"

// restrained is what an attempt would do, as thresholds ask about it.
func (a *attempt) restrained() restraint.Command {
	return restraint.Command{Nodes: a.nodes, SavedPerHour: a.SavedPerHour, NewPerHour: a.Result.PricePerHour, PodsMoved: a.PodsMoved}
}
