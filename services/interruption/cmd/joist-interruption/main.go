// Command joist-interruption runs the interruption service: as a Lambda function, or polling its
// queue.
package main

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func main() {
	startup.Function(startup.Service{
		Name:     "interruption",
		Purpose:  "joist-interruption reads what AWS is about to take away.",
		Required: []string{settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Interruptions},
	}, (&wiring{}).newHandler, lambda.Serve)
}

// metrics are what the service's counts are called.
var metrics = map[interruption.NoticeCounter]telemetry.Metric{
	interruption.Received: telemetry.Received, interruption.Deleted: telemetry.Deleted, interruption.QueueDuration: telemetry.Heard,
}

// wiring wires the service of each cluster. EC2's rates are the account's, so one limit is
// for all clusters that the process serves.
type wiring struct{ limiter *rate.Limiter }

func (w *wiring) newHandler(p *startup.Parts) (host.Handler, host.Options) {
	if w.limiter == nil {
		w.limiter = rate.NewLimiter(describesPerSecond, describesBurst)
	}
	ec2 := ec2cloud.New(p.AWS)
	// One service for all handlers, for they share its memory and its calls.
	service := &interruption.Service{
		EC2: limitedEC2{ec2, w.limiter}, Statuses: ec2,
		Bus:     queue.GatherSender(p.Facts(), interruption.BusLanes),
		Cluster: p.Cluster, Account: p.Account(), Region: p.Region, Now: time.Now, Limit: interruption.CallLimit,
	}
	if p.Traces {
		service.Span = p.Telemetry.Span
	}
	p.Telemetry.Also = interruption.CountLines(func(what interruption.NoticeCounter, value float64, labels ...string) {
		p.Telemetry.Count(metrics[what], value, labels...)
	})
	options := interruption.Options()
	options.Batch = p.Telemetry.Batch(service.Batch)
	return service.Handle, options
}

// EC2 allows an account 20 reads a second, and others read as well. A call
// carries up to 200 instances, so this is enough for thousands a second.
const (
	describesPerSecond = 10
	describesBurst     = 20
	// throttlePenalty is how many calls of the future are given up for one that EC2
	// refused.
	throttlePenalty = 10
)

// limitedEC2 keeps below EC2's rate.
type limitedEC2 struct {
	cloud.Instances
	limiter *rate.Limiter
}

// DescribeInstances waits for its turn.
func (p limitedEC2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	if err := p.limiter.Wait(ctx); err != nil {
		return nil, fault.E("waiting to ask EC2", fault.Throttled, err)
	}
	found, err := p.Instances.DescribeInstances(ctx, filter)
	if fault.Is(err, fault.Throttled) {
		p.limiter.ReserveN(time.Now(), throttlePenalty)
	}
	return found, err
}
