// Command joist-disruption runs the disruption service: as a Lambda function, or polling its
// queue.
package main

import (
	"time"

	"github.com/joist-autoscaler/joist/services/disruption"
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
		Name:     "disruption",
		Purpose:  "joist-disruption reads snapshots of the cluster and proposes what to remove or replace.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix},
	}, buildHandler, lambda.Serve)
}

// metrics maps the service's metrics to their names in telemetry.
var metrics = map[disruption.Counted]telemetry.Metric{
	disruption.EligibleNodes: telemetry.Eligible, disruption.Timeouts: telemetry.Timeouts, disruption.Evaluations: telemetry.EvaluationTime,
	disruption.Moves: telemetry.ConsolidationMoves, disruption.Scores: telemetry.ConsolidationScore,
}

func buildHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	service := disruption.Service{
		Blobs: p.BlobStore(), Catalogues: &blob.DocumentCache[catalog.Catalogue]{}, LastIdle: &disruption.LastIdle{}, ReportSchedule: &disruption.ReportSchedule{}, Bus: p.EventBus(), Cluster: p.Cluster, Now: time.Now,
		Count: func(what disruption.Counted, value float64, labels ...string) {
			p.Telemetry.RecordMetric(metrics[what], value, labels...)
		},
	}
	return p.NewEventHandler(disruption.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}
}
