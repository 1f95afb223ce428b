// Package ratelimit keeps a launcher below EC2's request limits and shares them among the clusters
// that it serves.
//
// EC2 has a token bucket for each account, region and kind of call; this package has a copy of
// each. A call waits for its token, and clusters take turns. If EC2 throttles a call nevertheless,
// other clients use the same buckets, and the rate is reduced.
//   - Each call needs a token, and each token is used once.
//   - A call that waits longer than MaxWait is not made and returns fault.Throttled; the message is
//     redelivered.
//   - While one cluster waits, no other gets two tokens in a row.
package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// MaxWait is how long a call waits for its token. It is shorter than messages are valid,
// so that waiting launches do not block terminations, which have their own bucket.
const MaxWait = 10 * time.Second

// documentedRates are EC2's limits by account and region: "Request throttling for the
// Amazon EC2 API". bucketInstances counts launched instances; the others count calls.
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
	// OnCall is called for each call with the time that it waited for tokens, and its
	// result. It may be nil.
	OnCall func(cluster, bucket string, waited time.Duration, err error)
}

// New returns full buckets with a share of EC2's documented limits: 1 for all of them, more if AWS has raised those of the account. A
// rate that is too high is reduced as long as EC2 throttles calls.
func New(share float64) *Limiter {
	p := &Limiter{buckets: map[string]*bucket{}}
	for name, r := range documentedRates {
		p.buckets[name] = newBucket(name, Rate{r.PerSecond * share, r.Burst * share})
	}
	return p
}

// EC2 has the calls whose rate is limited.
type EC2 interface {
	cloud.Launcher
	cloud.DryRunner
}

// ForCluster returns an EC2 that limits the calls of one cluster.
func (p *Limiter) ForCluster(cluster string, ec2 EC2) EC2 { return limitedEC2{p, cluster, ec2} }

// limitCall waits for a token of the bucket, makes the call and adapts the rate to its
// result.
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

// limitedEC2 limits the calls of one cluster.
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

func (c limitedEC2) Reboot(ctx context.Context, id string) error {
	return c.callEC2(ctx, bucketWrites, func() error { return c.ec2.Reboot(ctx, id) })
}

func (c limitedEC2) Tag(ctx context.Context, ids []string, with map[string]string) error {
	return c.callEC2(ctx, bucketTags, func() error { return c.ec2.Tag(ctx, ids, with) })
}

// CreateFleet takes tokens of two buckets: one for the call, then one for each instance. EC2
// reports inside its answer that the second bucket is empty. If the tokens for the instances are
// not available in time, the token for the call is lost. This is harmless, because instances are
// the bottleneck then.
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
	if notCalled := (notCalledError{}); errors.As(err, &notCalled) {
		return out, notCalled.error
	}
	if err == nil {
		instances.adaptRate(instanceLimitError(out))
	}
	return out, err
}

// notCalledError wraps the error of a call that was not made, so that its bucket does not
// adapt the rate.
type notCalledError struct{ error }

// instanceLimitError returns fault.Throttled if the answer reports that EC2's bucket of
// instances is empty.
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
