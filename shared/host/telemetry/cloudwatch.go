package telemetry

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/emf"
)

// ToLog writes metrics for CloudWatch into the log.
const ToLog = "stdout"

// agentScheme is the URL scheme of an agent, as in AWS's own libraries.
const agentScheme = "tcp://"

// cloudWatchEvery is the interval at which long-running processes send metrics to CloudWatch, whose metrics have a
// resolution of one minute.
const cloudWatchEvery = time.Minute

func (o Options) cloudWatch() *emf.Buffer {
	return &emf.Buffer{Group: AgentGroup(o.CloudWatch, o.Cluster)}
}

// AgentGroup returns the log group for a cluster's metrics if cloudWatch (Options.CloudWatch) is an agent, otherwise
// "". The stack creates the group, because an agent that creates it sets no retention.
func AgentGroup(cloudWatch, cluster string) string {
	if !strings.HasPrefix(cloudWatch, agentScheme) {
		return ""
	}
	return path.Join("/joist", cluster, "metrics")
}

// writeCloudWatch writes the values since the last call. Values that an agent does not accept are lost: sending them
// later would show a false increase.
func (t *Telemetry) writeCloudWatch(ctx context.Context) error {
	if t.meters.cloudWatch == nil {
		return nil
	}
	lines := t.meters.cloudWatch.TakeLines(metric.Namespace, time.Now())
	if len(lines) == 0 {
		return nil
	}
	if address, agent := strings.CutPrefix(t.CloudWatch, agentScheme); agent {
		return emf.Agent{Address: address}.Send(ctx, lines)
	}
	_, err := t.Out.Write(lines)
	return err
}

// runCloudWatch writes to CloudWatch until the context ends; Close writes the rest.
func (t *Telemetry) runCloudWatch(ctx context.Context) {
	if t.meters.cloudWatch == nil {
		return
	}
	trouble, tick := t.ErrorLog(), time.NewTicker(cloudWatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			trouble.Report(now, t.writeCloudWatch(ctx))
		}
	}
}
