// Command joist-interruption runs the interruption service: as a Lambda function, or polling its
// queue.
package main

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/parts"
	"github.com/joist-autoscaler/joist/shared/settings"
)

func main() {
	parts.Main(parts.Service{
		Name:     "interruption",
		Purpose:  "joist-interruption reads what AWS is about to take away.",
		Required: []string{settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL},
	}, run)
}

func run(ctx context.Context, p *parts.Parts) error {
	ec2 := ec2cloud.New(p.AWS)
	// One service for all handlers, for they share its memory.
	service := &interruption.Service{EC2: ec2, Statuses: ec2, Bus: p.Facts(), Cluster: p.Cluster, Region: p.Region, Now: time.Now}
	return p.Run(ctx, service.Handle, host.Options{}, lambda.Serve)
}
