// Command joist-planner runs the planner service: as a Lambda function, or polling its
// queue.
package main

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/parts"
	"github.com/joist-autoscaler/joist/shared/settings"
)

func main() {
	parts.Main(parts.Service{
		Name:     "planner",
		Purpose:  "joist-planner reads batches of pods without a node and says what to launch.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix},
	}, run)
}

func run(ctx context.Context, p *parts.Parts) error {
	service := planner.Service{Blobs: p.Blobs(), Catalogues: &blob.Kept[catalog.Catalogue]{}, Bus: p.Facts(), Cluster: p.Cluster, Now: time.Now}
	return p.Run(ctx, p.Events(planner.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}, lambda.Serve)
}
