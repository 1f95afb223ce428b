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
)

func main() {
	startup.RunFunction(startup.Service{
		Name:     "disruption",
		Purpose:  "joist-disruption reads snapshots of the cluster and proposes what to remove or replace.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix},
	}, buildHandler, lambda.Serve)
}

func buildHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	service := disruption.Service{
		Blobs: p.BlobStore(), Catalogues: &blob.DocumentCache[catalog.Catalogue]{}, Parts: &blob.PartCache{Parallel: blob.Parallel}, LastIdle: &disruption.LastIdle{}, ReportSchedule: &disruption.ReportSchedule{}, Bus: p.EventBus(), Cluster: p.Cluster, Now: time.Now,
		Metrics: p.Telemetry.RecordMetric, Span: p.Telemetry.RecordSpan, Samples: p.Telemetry.SamplesTrace,
	}
	return p.NewEventHandler(disruption.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}
}
