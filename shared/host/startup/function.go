package startup

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// WireFunc makes what handles the messages of one cluster, out of its parts, and says how
// its queue is worked on. What it makes is the cluster's alone, memory too; it is called
// once for each cluster, one after another.
type WireFunc func(p *Bootstrap) (host.Handler, host.Options)

// LambdaHost is the host for functions, which only a main links.
type LambdaHost func(ctx context.Context, o host.LambdaOptions) error

// RunFunction runs the command line of a service that works on a queue: as a Lambda
// function or by polling, for one cluster or for those that settings.Clusters lists.
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
		// What is lost here is the last few spans.
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

// runWorkers handles messages where the process finds itself: under Lambda by the given
// host, elsewhere by polling the queue of each cluster.
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

// findWorker is the worker of the queue that an event source ARN names.
func (c clusterWorkers) findWorker(arn string) (host.Worker, error) {
	m, err := c.findCluster(arn)
	return m.worker, err
}

// findCluster is the one that works on the queue that an ARN names, in the region of all.
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
	wrong := fault.F("finding the cluster of a queue", fault.Foreign, "this function does not work on the queue")
	if len(c) > 1 {
		return clusterWorker{}, wrong.WithHint("give the cluster an object in %s with %s=%s, or take the queue's event source mapping away", settings.Clusters, settings.QueueURL, url)
	}
	return clusterWorker{}, wrong.WithHint("set %s=%s if that is the service's queue; else find out who invokes the function", settings.QueueURL, url)
}

// requireQueueURLs demands that each cluster's queue is known: a function must refuse the records of
// every other.
func (c clusterWorkers) requireQueueURLs() error {
	for _, m := range c {
		if m.QueueURL == "" {
			return fault.F("finding the queue of cluster "+m.Cluster.Name, fault.Invalid, "%s is not set", settings.QueueURL).
				WithHint("set %s to the URL of the queue that invokes the function", settings.QueueURL)
		}
	}
	return nil
}

// isSameQueue compares URLs by account and name, for hosts may be others: an endpoint in a
// VPC, say.
func isSameQueue(set, url string) bool {
	account := accountFromQueueURL(set)
	return set != "" && path.Base(set) == path.Base(url) && (account == "" || account == accountFromQueueURL(url))
}

// refuseRecord logs and counts a record that is refused, for the cluster whose queue it names
// or, of an unknown queue, for the first.
func (c clusterWorkers) refuseRecord(arn string, m queue.Message, why host.RefusalReason, err error) {
	of, unknown := c.findCluster(arn)
	if unknown != nil {
		of = c[0]
	}
	verdict := host.MessageDisposition{Action: host.LeaveHidden, Kind: fault.KindOf(err), Reason: err.Error()}
	of.Telemetry.RefuseRecord(host.LogLine{Service: of.Service.Name, Message: m, Start: time.Now(), Disposition: verdict, DispositionErr: err}, why)
}

// pollRetryPause is after how long a poller that ended is tried again, where others go on.
const pollRetryPause = time.Minute

// pollQueues polls all queues. Of several, one that cannot be polled is told and tried again:
// it must not stop the others' messages.
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
			// The process is well: a restart would not help, and stop the others.
			beat()
			select {
			case <-time.After(pollRetryPause):
			case <-ctx.Done():
				return nil
			}
		}
	}
}
