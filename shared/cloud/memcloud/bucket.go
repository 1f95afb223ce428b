package memcloud

import (
	"math"
	"time"
)

// bucketName is the name of one token bucket.
type bucketName string

const (
	reads      bucketName = "non-mutating"
	writes     bucketName = "mutating"
	launches   bucketName = "RunInstances"
	ends       bucketName = "TerminateInstances"
	tagging    bucketName = "CreateTags"
	resources  bucketName = "RunInstances resources"
	unmeasured bucketName = ""
)

// rates are EC2's documented request rates per second, and bursts. The bucket resources counts instances instead of
// calls.
var rates = map[bucketName]struct{ rate, burst float64 }{
	reads:     {20, 100},
	writes:    {5, 50},
	launches:  {2, 5},
	ends:      {5, 100},
	tagging:   {10, 100},
	resources: {2, 1000},
}

// bucketOf maps actions to their bucket. SSM, IAM and EKS have their own limits, which no caller comes close to.
var bucketOf = map[Action]bucketName{
	DescribeInstances:      reads,
	DescribeTemplates:      reads,
	DescribeSubnets:        reads,
	DescribeSecurityGroups: reads,
	DescribeImages:         reads,
	DescribeStatus:         reads,
	DescribeReservations:   reads,
	DescribeGroups:         reads,
	CreateTemplate:         writes,
	DeleteTemplate:         writes,
	CreateFleet:            launches,
	RunInstances:           launches,
	TerminateInstances:     ends,
	RebootInstances:        writes,
	CreateTags:             tagging,

	DescribeInstanceTypes:         reads,
	DescribeInstanceTypeOfferings: reads,
	DescribeAvailabilityZones:     reads,
	DescribeSpotPriceHistory:      reads,
}

// bucket is a token bucket; tokens is never negative.
type bucket struct {
	rate, burst, tokens float64
	filled              time.Time
}

func newBuckets(divisor float64, now time.Time) map[bucketName]*bucket {
	out := map[bucketName]*bucket{}
	if divisor < 0 {
		return out
	}
	for name, r := range rates {
		burst := max(1, r.burst/divisor)
		out[name] = &bucket{rate: r.rate / divisor, burst: burst, tokens: burst, filled: now}
	}
	return out
}

// take removes n tokens if there are enough. A nil bucket has no limit.
func (b *bucket) take(now time.Time, n float64) bool {
	if b == nil {
		return true
	}
	if passed := now.Sub(b.filled).Seconds(); passed > 0 {
		b.tokens = math.Min(b.burst, b.tokens+passed*b.rate)
		b.filled = now
	}
	if b.tokens < n {
		return false
	}
	b.tokens -= n
	return true
}

// Count is how often an action was called and how often it was throttled.
type Count struct {
	Calls, Throttled int
}

// Counts returns the counts of each action.
func (c *Cloud) Counts() map[Action]Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[Action]Count, len(c.counts))
	for action, n := range c.counts {
		out[action] = *n
	}
	return out
}

// Tokens returns the remaining tokens of each bucket, so that a checker can verify that none is negative.
func (c *Cloud) Tokens() map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]float64, len(c.buckets))
	for name, b := range c.buckets {
		out[string(name)] = b.tokens
	}
	return out
}
