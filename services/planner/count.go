package planner

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Counted is something about planning that somebody may watch.
type Counted string

// What is counted, with its labels in brackets.
const (
	// Pending are the pods of a batch.
	Pending Counted = "pending"
	// Ignored are the pods of a batch that wait and are not for Joist to plan.
	Ignored Counted = "ignored"
	// Unplaced are the pods of a batch for which no node would do [controller].
	Unplaced Counted = "unplaced"
	// Planned are the NodeClaims of a plan.
	Planned Counted = "planned"
	// Price is what they cost, in US dollars an hour.
	Price Counted = "price"
	// Solving is how long planning took, in seconds [controller].
	Solving Counted = "solving"
)

// provisioner is who plans batches, in Karpenter's labels.
const provisioner = "provisioner"

// count tells of a plan that was published.
func (s Service) count(batch planning.Batch, built launchspec.Built, took time.Duration) {
	if s.Count == nil {
		return
	}
	pending, ignored := 0, 0
	for _, class := range batch.Pending {
		for _, pod := range class.Pods {
			if pod.Buffer == "" { // Room for a buffer is no pod.
				pending++
			}
		}
	}
	for _, i := range batch.Ignored {
		ignored += len(i.Pods)
	}
	s.Count(Pending, float64(pending))
	s.Count(Ignored, float64(ignored))
	s.Count(Unplaced, float64(unplaced(built.Plan)), provisioner)
	s.Count(Planned, float64(built.Claims()))
	s.Count(Price, built.Plan.PricePerHour)
	s.Count(Solving, took.Seconds(), provisioner)
}
