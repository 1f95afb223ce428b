package parts

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/settings"
)

// Wire makes what handles the messages of one cluster, out of its parts, and says how
// its queue is worked on. What it makes is the cluster's alone, memory too; it is called
// once for each cluster, one after another.
type Wire func(p *Parts) (host.Handler, host.Options)

// Lambda is the host for functions, which only a main links.
type Lambda func(ctx context.Context, o host.LambdaOptions) error

// Function runs the command line of a service that works on a queue: as a Lambda
// function or by polling, for one cluster or for those that settings.Clusters lists.
func Function(s Service, wire Wire, lambda Lambda) {
	s.Optional = append(slices.Clone(s.Optional), settings.Clusters, settings.RoleARN)
	host.Main(host.Command{Name: "joist-" + s.Name, Help: s.help(), Run: func(ctx context.Context) error {
		read, err := settings.Each(os.LookupEnv, slices.Concat(requiredByAll, s.Required)...)
		if err != nil {
			return err
		}
		all, err := open(ctx, s, read)
		if err != nil {
			return err
		}
		// What is lost here is the last few spans.
		defer func() { _ = all[0].process.voice.Close() }()
		if err := identified(ctx, all[0].process.aws); err != nil {
			return err
		}
		for _, p := range all {
			if err := p.locate(ctx); err != nil {
				return err
			}
		}
		return serve(ctx, all, wire, lambda)
	}})
}

// crew are the workers of a process, one for each cluster.
type crew []member

type member struct {
	*Parts
	worker  host.Worker
	options host.Options
}

// serve handles messages where the process finds itself: under Lambda by the given
// host, elsewhere by polling the queue of each cluster.
func serve(ctx context.Context, all []*Parts, wire Wire, lambda Lambda) error {
	c := make(crew, len(all))
	for i, p := range all {
		handle, o := wire(p)
		w := p.Worker(handle)
		w.Again, w.Batch, w.Told = o.Again, o.Batch, p.Trouble
		c[i] = member{p, w, o}
	}
	first := all[0]
	return host.Run(ctx, host.Place{Lambda: first.Lambda, QueueURL: first.QueueURL, QueueVariable: settings.QueueURL},
		func(ctx context.Context) error {
			return lambda(ctx, host.LambdaOptions{Worker: c.of, Strange: c.strange, After: first.process.voice.Flush})
		}, c.poll)
}

// of is the worker of the queue that an event source ARN names. Where there is one
// cluster and no queue is set for it, that is the queue.
func (c crew) of(arn string) (host.Worker, error) {
	url, err := urlOf(arn)
	if err != nil {
		return host.Worker{}, err
	}
	for _, m := range c {
		if sameQueue(m.QueueURL, url) {
			return m.worker, nil
		}
	}
	if len(c) > 1 {
		return host.Worker{}, fault.F("finding the cluster of a queue", fault.Invalid, "no object of %s has this queue", settings.Clusters).
			WithHint("give the cluster an object in %s with %s=%s, or take the queue's event source mapping away", settings.Clusters, settings.QueueURL, url)
	}
	w := c[0].worker
	w.Queue = c[0].own(url)
	return w, nil
}

// sameQueue compares URLs by account and name, for hosts may be others: an endpoint in a
// VPC, say.
func sameQueue(set, url string) bool {
	account := accountOf(set)
	return set != "" && path.Base(set) == path.Base(url) && (account == "" || account == accountOf(url))
}

// strange tells of a message that has no worker.
func (c crew) strange(m queue.Message, err error) {
	c[0].process.voice.Line(host.Line{Service: c[0].Service.Name, Message: m, Began: time.Now(), Verdict: host.Verdict{Action: host.Keep}, Err: err})
}

// again is after how long a poller that ended is tried again, where others go on.
const again = time.Minute

// poll polls all queues. Of several, one that cannot be polled is told and tried again:
// it must not stop the others' messages.
func (c crew) poll(ctx context.Context) error {
	var polls []func(ctx context.Context) error
	for _, m := range c {
		poll, pulse := m.polling(m.worker, m.options)
		if len(c) > 1 {
			poll = m.lasting(poll, pulse.Beat)
		}
		polls = append(polls, poll)
	}
	if err := c[0].Serve(ctx, nil); err != nil {
		return err
	}
	return host.Together(ctx, polls...)
}

// lasting polls until the context ends.
func (m member) lasting(poll func(ctx context.Context) error, beat func()) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for {
			err := poll(ctx)
			if ctx.Err() != nil {
				return err
			}
			m.Trouble.Happened(time.Now(), err)
			// The process is well: a restart would not help, and stop the others.
			beat()
			select {
			case <-time.After(again):
			case <-ctx.Done():
				return nil
			}
		}
	}
}
