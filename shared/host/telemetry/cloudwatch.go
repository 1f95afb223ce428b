package telemetry

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/telemetry/emf"
)

// ToLog has metrics for CloudWatch among the lines of the log.
const ToLog = "stdout"

// agentScheme begins the URL of an agent, as AWS's own libraries write it.
const agentScheme = "tcp://"

// cloudWatchEvery is how often what runs on and on tells CloudWatch: no metric of its is
// finer.
const cloudWatchEvery = time.Minute

func (o Options) cloudWatch() *emf.Buffer {
	return &emf.Buffer{Group: AgentGroup(o.CloudWatch, o.Cluster)}
}

// AgentGroup is the log group that an agent is to write a cluster's metrics to, by where
// they go (Options.CloudWatch); none where they go to no agent. The agent makes it where it
// is not there, and then keeps it for ever, so the stack makes it.
func AgentGroup(cloudWatch, cluster string) string {
	if !strings.HasPrefix(cloudWatch, agentScheme) {
		return ""
	}
	return path.Join("/joist", cluster, "metrics")
}

// writeCloudWatch writes what was counted since the last time. What an agent does not take
// is lost: counting it later would draw a rise that was not.
func (t *Telemetry) writeCloudWatch(ctx context.Context) error {
	if t.meters.cloudWatch == nil {
		return nil
	}
	lines := t.meters.cloudWatch.TakeLines(Namespace, time.Now())
	if len(lines) == 0 {
		return nil
	}
	if address, agent := strings.CutPrefix(t.CloudWatch, agentScheme); agent {
		return emf.Agent{Address: address}.Send(ctx, lines)
	}
	_, err := t.Out.Write(lines)
	return err
}

// runCloudWatch tells CloudWatch until the context ends; Close tells the rest.
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
