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
)

func main() {
	startup.RunFunction(startup.Service{
		Name:     "planner",
		Purpose:  "joist-planner reads batches of unschedulable pods and plans which instances to launch.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix},
	}, buildHandler, lambda.Serve)
}

func buildHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	service := planner.Service{
		Blobs: p.BlobStore(), Catalogues: &blob.DocumentCache[catalog.Catalogue]{}, Parts: &blob.PartCache{Parallel: blob.Parallel}, Parallel: blob.Parallel, Bus: p.EventBus(), Cluster: p.Cluster, Now: time.Now,
		Metrics: p.Telemetry.RecordMetric,
	}
	return p.NewEventHandler(planner.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}
}
