package planner

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// provisioner is the controller label of metrics of batches, as in Karpenter.
const provisioner = "provisioner"

// countPlan records the metrics of a published plan.
func (s Service) countPlan(batch planning.Batch, built launchspec.Built, took time.Duration) {
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
	s.Metrics.Record(metric.BatchPods, float64(pending))
	s.Metrics.Record(metric.IgnoredPods, float64(ignored))
	s.Metrics.Record(metric.UnschedulablePods, float64(countUnplaced(built.Plan)), provisioner)
	s.Metrics.Record(metric.ClaimsPlanned, float64(built.Claims()))
	s.Metrics.Record(metric.PlannedPrice, built.Plan.PricePerHour)
	s.Metrics.Record(metric.PlanningTime, took.Seconds(), provisioner)
}
