// Command joist-launcher runs the launcher service: as a Lambda function, or polling its
// queue.
package main

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/iamprofile"
	"github.com/joist-autoscaler/joist/shared/parts"
	"github.com/joist-autoscaler/joist/shared/settings"
)

func main() {
	parts.Main(parts.Service{
		Name:     "launcher",
		Purpose:  "joist-launcher launches, tags and terminates instances, as lifecycle asks.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Prefix, settings.TemplateAge},
	}, run)
}

func run(ctx context.Context, p *parts.Parts) error {
	service := launcher.Service{
		EC2: ec2cloud.New(p.AWS), Profiles: iamprofile.New(p.AWS), Blobs: p.Blobs(), Bus: p.Facts(),
		Cluster: p.Cluster, TemplateAge: p.TemplateAge, Now: time.Now,
	}
	// A fleet call may take its minute, and is described after.
	return p.Run(ctx, p.Events(launcher.Types, service.Handle), host.Options{Deadline: 2 * time.Minute}, lambda.Serve)
}
