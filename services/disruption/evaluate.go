package disruption

import "github.com/joist-autoscaler/joist/shared/scheduling"

// Evaluate is the decision alone: what Handle publishes, and what consolidate,
// simulate and why run. It is a pure function, the snapshot's Taken its only clock.
func Evaluate(s scheduling.Snapshot, stock scheduling.Stock, o Options) Findings {
	_, _, _ = s, stock, o
	return Findings{}
}
