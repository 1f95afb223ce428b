// Package pace keeps one launcher below the rates at which EC2 throttles, and
// shares them fairly among the clusters that it serves.
//
// The idea: EC2 has token buckets for each account, region and kind of call; the
// same buckets stand here, in front of it. A caller waits for its token, cluster
// by cluster in turn. Where EC2 throttles all the same, others draw from the
// account too, and the bucket's rate follows what is left. The invariants:
//
//   - No call is made without a token, and no token is drawn twice.
//   - Nobody waits longer than Patience: then the call was not made, which is
//     fault.Throttled, and the message comes again.
//   - As long as one cluster waits, no other gets two tokens in a row.
package pace

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Patience is how long a call waits for its token. It is shorter than a message
// lives, so that launches which must wait do not keep the hands from ends, which
// have a bucket of their own.
const Patience = 10 * time.Second

// The rates that EC2 documents, by account and region:
// docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. Resources are
// counted in instances and not in calls.
var rates = map[string]Rate{
	reads:     {20, 100},
	writes:    {5, 50},
	launches:  {2, 5},
	resources: {2, 1000},
	ends:      {5, 100},
	tags:      {10, 100},
}

const (
	reads     = "non-mutating calls"
	writes    = "mutating calls"
	launches  = "RunInstances"
	resources = "instances launched"
	ends      = "TerminateInstances"
	tags      = "CreateTags"
)

// Pacer has the buckets of one account and region. It is safe for concurrent use.
type Pacer struct {
	buckets map[string]*bucket
	// Told hears of each call: whose it was, how long it had waited, and how it ended.
	Told func(cluster, bucket string, waited time.Duration, err error)
}

// New makes full buckets with a share of what EC2 documents: 1 for all of it.
func New(share float64) *Pacer {
	p := &Pacer{buckets: map[string]*bucket{}}
	for name, r := range rates {
		p.buckets[name] = newBucket(name, Rate{r.PerSecond * share, r.Burst * share})
	}
	return p
}

// EC2 is what the launcher calls.
type EC2 interface {
	cloud.Launcher
	cloud.Rehearsal
}

// For is an EC2 that one cluster calls through the buckets.
func (p *Pacer) For(cluster string, ec2 EC2) EC2 { return paced{p, cluster, ec2} }

// through waits for a token of the bucket, makes the call and learns from it.
func (p *Pacer) through(ctx context.Context, cluster, name string, call func() error) error {
	b := p.buckets[name]
	began := time.Now()
	if err := p.wait(ctx, cluster, b, 1); err != nil {
		p.tell(cluster, name, time.Since(began), err)
		return err
	}
	waited := time.Since(began)
	err := call()
	if !errors.As(err, &unmade{}) {
		b.learn(err)
	}
	p.tell(cluster, name, waited, err)
	return err
}

func (p *Pacer) tell(cluster, name string, waited time.Duration, err error) {
	if p.Told != nil {
		p.Told(cluster, name, waited, err)
	}
}

func (p *Pacer) wait(ctx context.Context, cluster string, b *bucket, n int) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return b.wait(ctx, cluster, n)
}

// paced is one cluster's way through the buckets.
type paced struct {
	*Pacer
	cluster string
	ec2     EC2
}

func (c paced) do(ctx context.Context, bucket string, call func() error) error {
	return c.through(ctx, c.cluster, bucket, call)
}

func (c paced) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) (out []cloud.Instance, err error) {
	err = c.do(ctx, reads, func() error { out, err = c.ec2.DescribeInstances(ctx, filter); return err })
	return out, err
}

func (c paced) Templates(ctx context.Context, want map[string]string) (out []cloud.TemplateInfo, err error) {
	err = c.do(ctx, reads, func() error { out, err = c.ec2.Templates(ctx, want); return err })
	return out, err
}

func (c paced) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	return c.do(ctx, writes, func() error { return c.ec2.EnsureTemplate(ctx, t) })
}

func (c paced) DeleteTemplate(ctx context.Context, name string) error {
	return c.do(ctx, writes, func() error { return c.ec2.DeleteTemplate(ctx, name) })
}

func (c paced) Terminate(ctx context.Context, ids []string) error {
	return c.do(ctx, ends, func() error { return c.ec2.Terminate(ctx, ids) })
}

func (c paced) Tag(ctx context.Context, ids []string, with map[string]string) error {
	return c.do(ctx, tags, func() error { return c.ec2.Tag(ctx, ids, with) })
}

// CreateFleet draws from two buckets. EC2 tells of the one of instances inside
// its answer. The call's token comes first: where the instances' do not come in
// time it is lost, and then calls are not what there is too little of.
func (c paced) CreateFleet(ctx context.Context, request cloud.FleetRequest) (out cloud.FleetResult, err error) {
	instances := c.buckets[resources]
	err = c.do(ctx, launches, func() error {
		began := time.Now()
		err := c.wait(ctx, c.cluster, instances, request.Count)
		c.tell(c.cluster, resources, time.Since(began), err)
		if err != nil {
			return unmade{err}
		}
		out, err = c.ec2.CreateFleet(ctx, request)
		return err
	})
	if unmade := (unmade{}); errors.As(err, &unmade) {
		return out, unmade.error
	}
	if err == nil {
		instances.learn(overrun(out))
	}
	return out, err
}

// unmade is why a call was not made, of which its bucket learns nothing.
type unmade struct{ error }

// overrun finds EC2's word for an empty bucket of instances in an answer.
func overrun(result cloud.FleetResult) error {
	for _, e := range result.Errors {
		if e.Code == "RequestLimitExceeded" {
			return fault.E("launching instances", fault.Throttled, nil)
		}
	}
	return nil
}

func (c paced) TryTemplate(ctx context.Context, t cloud.Template) error {
	return c.do(ctx, writes, func() error { return c.ec2.TryTemplate(ctx, t) })
}

func (c paced) TryFleet(ctx context.Context, request cloud.FleetRequest) error {
	return c.do(ctx, launches, func() error { return c.ec2.TryFleet(ctx, request) })
}

func (c paced) TryRun(ctx context.Context, request cloud.RunRequest) error {
	return c.do(ctx, launches, func() error { return c.ec2.TryRun(ctx, request) })
}
