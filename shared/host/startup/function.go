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
			if err := c.queued(); err != nil {
				return err
			}
			return lambda(ctx, host.LambdaOptions{Worker: c.of, Strange: c.strange, After: first.process.voice.Flush})
		}, c.poll)
}

// of is the worker of the queue that an event source ARN names.
func (c crew) of(arn string) (host.Worker, error) {
	m, err := c.member(arn)
	return m.worker, err
}

// member is the one that works on the queue that an ARN names, in the region of all.
func (c crew) member(arn string) (member, error) {
	url, region, err := urlOf(arn)
	if err != nil {
		return member{}, err
	}
	for _, m := range c {
		if region == m.Region && sameQueue(m.QueueURL, url) {
			return m, nil
		}
	}
	wrong := fault.F("finding the cluster of a queue", fault.Foreign, "this function does not work on the queue")
	if len(c) > 1 {
		return member{}, wrong.WithHint("give the cluster an object in %s with %s=%s, or take the queue's event source mapping away", settings.Clusters, settings.QueueURL, url)
	}
	return member{}, wrong.WithHint("set %s=%s if that is the service's queue; else find out who invokes the function", settings.QueueURL, url)
}

// queued demands that each cluster's queue is known: a function must refuse the records of
// every other.
func (c crew) queued() error {
	for _, m := range c {
		if m.QueueURL == "" {
			return fault.F("finding the queue of cluster "+m.Cluster.Name, fault.Invalid, "%s is not set", settings.QueueURL).
				WithHint("set %s to the URL of the queue that invokes the function", settings.QueueURL)
		}
	}
	return nil
}

// sameQueue compares URLs by account and name, for hosts may be others: an endpoint in a
// VPC, say.
func sameQueue(set, url string) bool {
	account := accountOf(set)
	return set != "" && path.Base(set) == path.Base(url) && (account == "" || account == accountOf(url))
}

// strange logs and counts a record that is refused, for the cluster whose queue it names
// or, of an unknown queue, for the first.
func (c crew) strange(arn string, m queue.Message, why host.Strangeness, err error) {
	of, unknown := c.member(arn)
	if unknown != nil {
		of = c[0]
	}
	verdict := host.Verdict{Action: host.Keep, Kind: fault.KindOf(err), Reason: err.Error()}
	of.Telemetry.RefuseRecord(host.Line{Service: of.Service.Name, Message: m, Began: time.Now(), Verdict: verdict, Err: err}, why)
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
