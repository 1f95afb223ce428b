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
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/startup"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
)

func main() {
	startup.Function(startup.Service{
		Name:     "launcher",
		Purpose:  "joist-launcher launches, tags and terminates instances, as lifecycle asks.",
		Required: []string{settings.Bucket, settings.Bus, settings.DeadLetterURL},
		Optional: []string{
			settings.QueueURL, settings.Prefix, settings.TemplateAge, settings.MaxPerIntent, settings.MaxPerMinute, settings.EC2Share,
		},
	}, (&wiring{}).newHandler, lambda.Serve)
}

// metrics are what the service's counts are called.
var metrics = map[launcher.LaunchCounter]telemetry.Metric{
	launcher.LaunchesStopped: telemetry.Stopped, launcher.LaunchesRefused: telemetry.Refusals, launcher.ForeignSkipped: telemetry.Spared,
	launcher.InstancesLaunched: telemetry.Launched, launcher.InstancesTerminated: telemetry.Ended,
}

// parallelMessages is how many messages are obeyed at a time. Most of them wait: for a
// token, or for others to share a call with.
const parallelMessages = 50

// wiring wires the launcher of each cluster. EC2's rates are the account's, so one pacer
// shares them among all clusters that the process serves.
type wiring struct {
	limiter *ratelimit.Limiter
	// telemetryByCluster are the clusters', by their names.
	telemetryByCluster map[string]*telemetry.Telemetry
}

func (w *wiring) newHandler(p *startup.Parts) (host.Handler, host.Options) {
	if w.limiter == nil {
		w.limiter, w.telemetryByCluster = ratelimit.New(p.EC2Share), map[string]*telemetry.Telemetry{}
		w.limiter.OnCall = w.recordWait
	}
	w.telemetryByCluster[p.Cluster.Name] = p.Telemetry
	// The pacer hears of every throttled call only where the SDK does not try again.
	once := p.AWS.Copy()
	once.RetryMaxAttempts = 1
	ec2 := w.limiter.ForCluster(p.Cluster.Name, ec2cloud.New(once))
	service := launcher.Service{
		EC2: batch.New(ec2, ec2cloud.Timeout), DryRun: ec2, Profiles: iamprofile.New(p.AWS), Blobs: p.Blobs(), Bus: p.Facts(),
		Cluster: p.Cluster, TemplateAge: p.TemplateAge, Now: time.Now,
		Count: func(what launcher.LaunchCounter, value float64, labels ...string) {
			p.Telemetry.Count(metrics[what], value, labels...)
		},
		Cache: launcher.NewLaunchCache(launcher.Limits{PerIntent: p.MaxPerIntent, PerMinute: p.MaxPerMinute}),
	}
	// A fleet call may take its four minutes, and is described after.
	return p.Events(launcher.Types, service.Handle), host.Options{Deadline: cloud.LaunchTimeout, Parallel: parallelMessages}
}

// recordWait counts how long a cluster's call waited.
func (w *wiring) recordWait(cluster, bucket string, waited time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = string(fault.KindOf(err))
	}
	w.telemetryByCluster[cluster].Count(telemetry.EC2Wait, waited.Seconds(), bucket, result)
}
