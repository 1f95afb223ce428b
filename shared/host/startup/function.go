package startup

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/shared/aws/stsrole"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// WireFunc creates the handler of one cluster's messages, and the options for its queue. It is called once for each
// cluster, sequentially. Handlers of different clusters must not share state.
type WireFunc func(p *Bootstrap) (host.Handler, host.Options)

// LambdaHost runs the Lambda host. Only mains link it.
type LambdaHost func(ctx context.Context, o host.LambdaOptions) error

// RunFunction runs a service that works on a queue from the command line: as a Lambda function or by polling, for one
// cluster or for the clusters that settings.Clusters lists.
func RunFunction(s Service, wire WireFunc, lambda LambdaHost) {
	s.Optional = append(slices.Clone(s.Optional), settings.Clusters, settings.RoleARN)
	host.Main(host.Command{Name: "joist-" + s.Name, Help: s.helpText(), Run: func(ctx context.Context) error {
		read, err := settings.ReadClusters(os.LookupEnv, slices.Concat(requiredByAll, s.Required)...)
		if err != nil {
			return err
		}
		all, err := openClusters(ctx, s, read)
		if err != nil {
			return err
		}
		// A failure loses only the last few spans.
		defer func() { _ = all[0].process.telemetry.Close() }()
		if err := checkCredentials(ctx, all[0].process.aws); err != nil {
			return err
		}
		for _, p := range all {
			if err := p.locateQueue(ctx); err != nil {
				return err
			}
		}
		return runWorkers(ctx, all, wire, lambda)
	}})
}

// clusterWorkers are the workers of a process, one for each cluster.
type clusterWorkers []clusterWorker

type clusterWorker struct {
	*Bootstrap
	worker  host.Worker
	options host.Options
}

// runWorkers handles messages with the given host under Lambda, and otherwise by polling the queue of each cluster.
func runWorkers(ctx context.Context, all []*Bootstrap, wire WireFunc, lambda LambdaHost) error {
	c := make(clusterWorkers, len(all))
	for i, p := range all {
		handle, o := wire(p)
		w := p.NewWorker(handle)
		w.Backoff, w.HandleBatch, w.ErrorLog = o.Backoff, o.HandleBatch, p.ErrorLog
		c[i] = clusterWorker{p, w, o}
	}
	first := all[0]
	return host.Run(ctx, host.RuntimeEnvironment{Lambda: first.Lambda, QueueURL: first.QueueURL, QueueVariable: settings.QueueURL},
		func(ctx context.Context) error {
			if err := c.requireQueueURLs(); err != nil {
				return err
			}
			return lambda(ctx, host.LambdaOptions{FindWorker: c.findWorker, OnRefused: c.refuseRecord, AfterInvocation: first.process.telemetry.Flush})
		}, c.pollQueues)
}

// findWorker returns the worker of the queue that an event source ARN names.
func (c clusterWorkers) findWorker(arn string) (host.Worker, error) {
	m, err := c.findCluster(arn)
	return m.worker, err
}

// findCluster returns the worker of the queue that an ARN names. Its region must match.
func (c clusterWorkers) findCluster(arn string) (clusterWorker, error) {
	url, region, err := queueURLFromARN(arn)
	if err != nil {
		return clusterWorker{}, err
	}
	for _, m := range c {
		if region == m.Region && isSameQueue(m.QueueURL, url) {
			return m, nil
		}
	}
	wrong := fault.F("finding the cluster of a queue", fault.Foreign, "this function has no worker for the queue")
	if len(c) > 1 {
		return clusterWorker{}, wrong.WithHint("add an object with %[2]s=%[3]s to %[1]s for the cluster, or remove the queue's event source mapping", settings.Clusters, settings.QueueURL, url)
	}
	return clusterWorker{}, wrong.WithHint("set %s=%s if it is the service's queue; otherwise find the caller that invokes the function", settings.QueueURL, url)
}

// requireQueueURLs returns an error if a cluster's queue is not configured: a function must reject the records of
// every other queue.
func (c clusterWorkers) requireQueueURLs() error {
	for _, m := range c {
		if m.QueueURL == "" {
			return fault.F("finding the queue of cluster "+m.Cluster.Name, fault.Invalid, "%s is not set", settings.QueueURL).
				WithHint("set %s to the URL of the queue that invokes the function", settings.QueueURL)
		}
	}
	return nil
}

// isSameQueue compares queue URLs by account and name, because hosts may differ, for example with a VPC endpoint.
func isSameQueue(set, url string) bool {
	account := accountFromQueueURL(set)
	return set != "" && path.Base(set) == path.Base(url) && (account == "" || account == accountFromQueueURL(url))
}

// refuseRecord logs and counts a rejected record, for the cluster of its queue, or for the first cluster if the queue
// is unknown.
func (c clusterWorkers) refuseRecord(arn string, m queue.Message, why host.RefusalReason, err error) {
	of, unknown := c.findCluster(arn)
	if unknown != nil {
		of = c[0]
	}
	disposition := host.MessageDisposition{Action: host.LeaveHidden, Kind: fault.KindOf(err), Reason: err.Error()}
	of.Telemetry.RefuseRecord(host.LogLine{Service: of.Service.Name, Message: m, Start: time.Now(), Disposition: disposition, DispositionErr: err}, why)
}

// pollRetryPause is the pause before a poller that ended is restarted, if the process serves several clusters.
const pollRetryPause = time.Minute

// pollQueues polls all queues. With several clusters, a poller that fails is reported and restarted: it must not stop
// the other clusters' messages.
func (c clusterWorkers) pollQueues(ctx context.Context) error {
	var polls []func(ctx context.Context) error
	for _, m := range c {
		poll, pulse := m.newPollWithHeartbeat(m.worker, m.options)
		if len(c) > 1 {
			poll = m.pollWithRetries(poll, pulse.Record)
		}
		polls = append(polls, poll)
	}
	if err := c[0].Serve(ctx, nil); err != nil {
		return err
	}
	return host.RunTogether(ctx, polls...)
}

// pollWithRetries polls until the context ends.
func (m clusterWorker) pollWithRetries(poll func(ctx context.Context) error, beat func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for {
			err := poll(ctx)
			if ctx.Err() != nil {
				return err
			}
			m.ErrorLog.Report(time.Now(), err)
			// The process stays alive: a restart would not help and would stop the other clusters.
			beat()
			select {
			case <-time.After(pollRetryPause):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// assumeRole returns the AWS configuration with which a service works for a cluster: with the cluster's role if there
// is one.
func assumeRole(config aws.Config, role, service, cluster string) aws.Config {
	if role == "" {
		return config
	}
	return stsrole.AssumeRole(config, role, topology.RoleSessionName(service, cluster))
}
