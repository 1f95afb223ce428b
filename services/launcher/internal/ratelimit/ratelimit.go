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
package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// MaxWait is how long a call waits for its token. It is shorter than a message
// lives, so that launches which must wait do not keep the hands from ends, which
// have a bucket of their own.
const MaxWait = 10 * time.Second

// The rates that EC2 documents, by account and region:
// docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. Resources are
// counted in instances and not in calls.
var documentedRates = map[string]Rate{
	bucketReads:        {20, 100},
	bucketWrites:       {5, 50},
	bucketLaunches:     {2, 5},
	bucketInstances:    {2, 1000},
	bucketTerminations: {5, 100},
	bucketTags:         {10, 100},
}

const (
	bucketReads        = "non-mutating calls"
	bucketWrites       = "mutating calls"
	bucketLaunches     = "RunInstances"
	bucketInstances    = "instances launched"
	bucketTerminations = "TerminateInstances"
	bucketTags         = "CreateTags"
)

// Limiter has the buckets of one account and region. It is safe for concurrent use.
type Limiter struct {
	buckets map[string]*bucket
	// OnCall hears of each call: whose it was, how long it had waited, and how it ended.
	OnCall func(cluster, bucket string, waited time.Duration, err error)
}

// New makes full buckets with a share of what EC2 documents: 1 for all of it.
func New(share float64) *Limiter {
	p := &Limiter{buckets: map[string]*bucket{}}
	for name, r := range documentedRates {
		p.buckets[name] = newBucket(name, Rate{r.PerSecond * share, r.Burst * share})
	}
	return p
}

// EC2 is what the launcher calls.
type EC2 interface {
	cloud.Launcher
	cloud.Rehearsal
}

// ForCluster is an EC2 that one cluster calls through the buckets.
func (p *Limiter) ForCluster(cluster string, ec2 EC2) EC2 { return limitedEC2{p, cluster, ec2} }

// limitCall waits for a token of the bucket, makes the call and learns from it.
func (p *Limiter) limitCall(ctx context.Context, cluster, name string, call func() error) error {
	b := p.buckets[name]
	began := time.Now()
	if err := p.waitForTokens(ctx, cluster, b, 1); err != nil {
		p.reportCall(cluster, name, time.Since(began), err)
		return err
	}
	waited := time.Since(began)
	err := call()
	if !errors.As(err, &notCalledError{}) {
		b.adaptRate(err)
	}
	p.reportCall(cluster, name, waited, err)
	return err
}

func (p *Limiter) reportCall(cluster, name string, waited time.Duration, err error) {
	if p.OnCall != nil {
		p.OnCall(cluster, name, waited, err)
	}
}

func (p *Limiter) waitForTokens(ctx context.Context, cluster string, b *bucket, n int) error {
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	return b.waitForTokens(ctx, cluster, n)
}

// limitedEC2 is one cluster's way through the buckets.
type limitedEC2 struct {
	*Limiter
	cluster string
	ec2     EC2
}

func (c limitedEC2) callEC2(ctx context.Context, bucket string, call func() error) error {
	return c.limitCall(ctx, c.cluster, bucket, call)
}

func (c limitedEC2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) (out []cloud.Instance, err error) {
	err = c.callEC2(ctx, bucketReads, func() error { out, err = c.ec2.DescribeInstances(ctx, filter); return err })
	return out, err
}

func (c limitedEC2) Templates(ctx context.Context, want map[string]string) (out []cloud.TemplateInfo, err error) {
	err = c.callEC2(ctx, bucketReads, func() error { out, err = c.ec2.Templates(ctx, want); return err })
	return out, err
}

func (c limitedEC2) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	return c.callEC2(ctx, bucketWrites, func() error { return c.ec2.EnsureTemplate(ctx, t) })
}

func (c limitedEC2) DeleteTemplate(ctx context.Context, name string) error {
	return c.callEC2(ctx, bucketWrites, func() error { return c.ec2.DeleteTemplate(ctx, name) })
}

func (c limitedEC2) Terminate(ctx context.Context, ids []string) error {
	return c.callEC2(ctx, bucketTerminations, func() error { return c.ec2.Terminate(ctx, ids) })
}

func (c limitedEC2) Tag(ctx context.Context, ids []string, with map[string]string) error {
	return c.callEC2(ctx, bucketTags, func() error { return c.ec2.Tag(ctx, ids, with) })
}

// CreateFleet draws from two buckets. EC2 tells of the one of instances inside
// its answer. The call's token comes first: where the instances' do not come in
// time it is lost, and then calls are not what there is too little of.
func (c limitedEC2) CreateFleet(ctx context.Context, request cloud.FleetRequest) (out cloud.FleetResult, err error) {
	instances := c.buckets[bucketInstances]
	err = c.callEC2(ctx, bucketLaunches, func() error {
		began := time.Now()
		err := c.waitForTokens(ctx, c.cluster, instances, request.Count)
		c.reportCall(c.cluster, bucketInstances, time.Since(began), err)
		if err != nil {
			return notCalledError{err}
		}
		out, err = c.ec2.CreateFleet(ctx, request)
		return err
	})
	if unmade := (notCalledError{}); errors.As(err, &unmade) {
		return out, unmade.error
	}
	if err == nil {
		instances.adaptRate(instanceLimitError(out))
	}
	return out, err
}

// notCalledError is why a call was not made, of which its bucket learns nothing.
type notCalledError struct{ error }

// instanceLimitError finds EC2's word for an empty bucket of instances in an answer.
func instanceLimitError(result cloud.FleetResult) error {
	for _, e := range result.Errors {
		if e.Code == "RequestLimitExceeded" {
			return fault.E("launching instances", fault.Throttled, nil)
		}
	}
	return nil
}

func (c limitedEC2) TryTemplate(ctx context.Context, t cloud.Template) error {
	return c.callEC2(ctx, bucketWrites, func() error { return c.ec2.TryTemplate(ctx, t) })
}

func (c limitedEC2) TryFleet(ctx context.Context, request cloud.FleetRequest) error {
	return c.callEC2(ctx, bucketLaunches, func() error { return c.ec2.TryFleet(ctx, request) })
}

func (c limitedEC2) TryRun(ctx context.Context, request cloud.RunRequest) error {
	return c.callEC2(ctx, bucketLaunches, func() error { return c.ec2.TryRun(ctx, request) })
}
