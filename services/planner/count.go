package planner

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Counted names a metric of planning.
type Counted string

// The metrics, with their labels in brackets.
const (
	// Pending is the number of pods in a batch.
	Pending Counted = "pending"
	// Ignored is the number of pending pods in a batch that Joist does not plan.
	Ignored Counted = "ignored"
	// Unplaced is the number of pods in a batch that could not be placed [controller].
	Unplaced Counted = "unplaced"
	// Planned is the number of NodeClaims in a plan.
	Planned Counted = "planned"
	// Price is the price of the planned NodeClaims, in US dollars an hour.
	Price Counted = "price"
	// Solving is how long planning took, in seconds [controller].
	Solving Counted = "solving"
)

// provisioner is the controller label of metrics of batches, as in Karpenter.
const provisioner = "provisioner"

// countPlan records the metrics of a published plan.
func (s Service) countPlan(batch planning.Batch, built launchspec.Built, took time.Duration) {
	if s.Count == nil {
		return
	}
	pending, ignored := 0, 0
	for _, class := range batch.Pending {
		for _, pod := range class.Pods {
			if pod.Buffer == "" { // Placeholders of buffers are not pods.
				pending++
			}
		}
	}
	for _, i := range batch.Ignored {
		ignored += len(i.Pods)
	}
	s.Count(Pending, float64(pending))
	s.Count(Ignored, float64(ignored))
	s.Count(Unplaced, float64(countUnplaced(built.Plan)), provisioner)
	s.Count(Planned, float64(built.Claims()))
	s.Count(Price, built.Plan.PricePerHour)
	s.Count(Solving, took.Seconds(), provisioner)
}
