// Command joist-planner runs the planner service: as a Lambda function, or polling its
// queue.
package main

import (
	"time"

	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
)

func main() {
	startup.RunFunction(startup.Service{
		Name:     "planner",
		Purpose:  "joist-planner reads batches of pods without a node and says what to launch.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix},
	}, buildHandler, lambda.Serve)
}

// metrics maps the service's metrics to their names in telemetry.
var metrics = map[planner.Counted]telemetry.Metric{
	planner.Pending: telemetry.BatchPods, planner.Ignored: telemetry.IgnoredPods, planner.Unplaced: telemetry.UnschedulablePods,
	planner.Planned: telemetry.ClaimsPlanned, planner.Price: telemetry.PlannedPrice, planner.Solving: telemetry.PlanningTime,
}

func buildHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	service := planner.Service{
		Blobs: p.BlobStore(), Catalogues: &blob.DocumentCache[catalog.Catalogue]{}, Bus: p.EventBus(), Cluster: p.Cluster, Now: time.Now,
		Count: func(what planner.Counted, value float64, labels ...string) {
			p.Telemetry.RecordMetric(metrics[what], value, labels...)
		},
	}
	return p.NewEventHandler(planner.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}
}
