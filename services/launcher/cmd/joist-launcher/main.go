// Command joist-launcher runs the launcher service: as a Lambda function, or polling its
// queue.
package main

import (
	"time"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/services/launcher/internal/batch"
	"github.com/joist-autoscaler/joist/services/launcher/internal/ratelimit"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/iamprofile"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
)

func main() {
	startup.RunFunction(startup.Service{
		Name:     "launcher",
		Purpose:  "joist-launcher launches, tags and terminates instances, as lifecycle requests.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{
			settings.QueueURL, settings.Prefix, settings.TemplateAge, settings.MaxPerIntent, settings.MaxPerMinute, settings.EC2Share,
		},
	}, (&wiring{}).newHandler, lambda.Serve)
}

// parallelMessages is how many messages are handled at a time. Most of them wait for a
// token or for a batch.
const parallelMessages = 50

// wiring builds the launcher of each cluster. EC2's request limits apply to the account,
// so the clusters of a process share one limiter.
type wiring struct {
	limiter            *ratelimit.Limiter
	telemetryByCluster map[string]*telemetry.Telemetry
}

func (w *wiring) newHandler(p *startup.Bootstrap) (host.Handler, host.Options) {
	if w.limiter == nil {
		w.limiter, w.telemetryByCluster = ratelimit.New(p.EC2Share), map[string]*telemetry.Telemetry{}
		w.limiter.OnCall = w.recordWait
	}
	w.telemetryByCluster[p.Cluster.Name] = p.Telemetry
	// The SDK must not retry, so that the limiter sees each throttled call.
	once := p.AWS.Copy()
	once.RetryMaxAttempts = 1
	ec2 := w.limiter.ForCluster(p.Cluster.Name, ec2cloud.New(once))
	service := launcher.Service{
		EC2: batch.New(ec2, ec2cloud.Timeout), DryRun: ec2, Profiles: iamprofile.New(p.AWS), Blobs: p.BlobStore(), Bus: p.EventBus(),
		Cluster: p.Cluster, TemplateAge: p.TemplateAge, Now: time.Now,
		Metrics: p.Telemetry.RecordMetric,
		Cache:   launcher.NewLaunchCache(launcher.Limits{PerIntent: p.MaxPerIntent, PerMinute: p.MaxPerMinute}),
	}
	// One message may make a CreateFleet call of up to four minutes and then describe the instances.
	return p.NewEventHandler(launcher.Types, service.Handle), host.Options{Deadline: cloud.LaunchTimeout, MaxConcurrent: parallelMessages}
}

// recordWait records how long a call waited for tokens.
func (w *wiring) recordWait(cluster, bucket string, waited time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = string(fault.KindOf(err))
	}
	w.telemetryByCluster[cluster].RecordMetric(metric.EC2RateLimitWait, waited.Seconds(), bucket, result)
}
