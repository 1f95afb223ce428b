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
	"github.com/joist-autoscaler/joist/shared/queue"
)

func main() {
	startup.RunFunction(startup.Service{
		Name:     "interruption",
		Purpose:  "joist-interruption receives AWS's interruption events and publishes those about the cluster's instances.",
		Required: []string{settings.Bus, settings.DeadLetterURL},
		Optional: []string{settings.QueueURL, settings.Interruptions},
	}, (&wiring{}).newHandler, lambda.Serve)
}

// wiring builds the service of each cluster. EC2's request limits apply to the account, so
// the clusters of a process share one limiter.
type wiring struct{ limiter *rate.Limiter }

func (w *wiring) newHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	if w.limiter == nil {
		w.limiter = rate.NewLimiter(describesPerSecond, describesBurst)
	}
	ec2 := ec2cloud.New(p.AWS)
	// All handlers share one service, because they share its cache and its calls.
	service := &interruption.Service{
		EC2: limitedEC2{ec2, w.limiter}, Statuses: ec2,
		Bus:     queue.BatchSends(p.EventBus(), interruption.BusLanes),
		Cluster: p.Cluster, Account: p.AccountID(), Region: p.Region, Now: time.Now, Limit: interruption.CallLimit,
		Samples: p.Telemetry.SamplesTrace,
	}
	if p.Tracing.Exports() {
		service.Span = p.Telemetry.RecordSpan
	}
	p.Telemetry.OnMessage = interruption.CountLines(p.Telemetry.RecordMetric)
	options := interruption.Options()
	options.HandleBatch = p.Telemetry.TraceBatch(service.Batch)
	return service.Handle, options
}

// EC2 allows 20 read calls a second in an account, which other clients share. Each call
// describes up to 200 instances, so these limits suffice for thousands a second.
const (
	describesPerSecond = 10
	describesBurst     = 20
	// throttlePenalty is how many future calls are skipped after EC2 throttled one.
	throttlePenalty = 10
)

// limitedEC2 limits the rate of calls to EC2.
type limitedEC2 struct {
	cloud.Instances
	limiter *rate.Limiter
}

// DescribeInstances waits until the limit allows the call.
func (p limitedEC2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	if err := p.limiter.Wait(ctx); err != nil {
		return nil, fault.E("waiting for EC2's request limit", fault.Throttled, err)
	}
	found, err := p.Instances.DescribeInstances(ctx, filter)
	if fault.Is(err, fault.Throttled) {
		p.limiter.ReserveN(time.Now(), throttlePenalty)
	}
	return found, err
}
