package ratelimit

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// A bucket adapts its rate, because other clients of the account use the same buckets of EC2, or
// the account has another quota. With these factors, the rate stays within a tenth of what EC2
// allows, and EC2 throttles about one call in some hundred.
const (
	// backoffFactor multiplies the rate after a throttled call.
	backoffFactor = 0.7
	// ceilingFactor times the throttled rate is the ceiling up to which the rate rises
	// quickly again.
	ceilingFactor = 0.9
	// climbShare is the share of the distance to the ceiling that each success adds.
	climbShare = 0.2
	// probeShare is the share of the documented rate that each success adds beyond that.
	probeShare = 0.001
	// minShare is the minimum rate as a share of the documented rate.
	minShare = 1.0 / 64
	// throttleCooldown is how long further throttled calls do not reduce the rate: they
	// were made at the previous rate.
	throttleCooldown = time.Second
	// recoveryTime without a throttled call restores the documented rate.
	recoveryTime = 5 * time.Minute
)

// Rate is the refill rate in tokens per second, and the size of the bucket.
type Rate struct{ PerSecond, Burst float64 }

// bucket is a copy of one of EC2's token buckets in this process.
type bucket struct {
	name  string
	rate  Rate
	mutex fairMutex

	mu      sync.Mutex
	limiter *rate.Limiter
	ceiling float64
	// throttledAt is the time of the last throttled call; zero before the first one.
	throttledAt time.Time
}

func newBucket(name string, r Rate) *bucket {
	return &bucket{name: name, rate: r, limiter: rate.NewLimiter(rate.Limit(r.PerSecond), max(1, int(r.Burst)))}
}

// waitForTokens takes n tokens when it is the cluster's turn. It returns fault.Throttled at once if
// the context would end before that.
func (b *bucket) waitForTokens(ctx context.Context, cluster string, n int) error {
	err := b.mutex.acquire(ctx, cluster)
	if err == nil {
		b.restoreRate(time.Now())
		err = b.drawTokens(ctx, n)
		b.mutex.release()
	}
	if err != nil {
		return fault.F("waiting for EC2's bucket of "+b.name, fault.Throttled,
			"%w: this launcher may use %.3g tokens a second", err, float64(b.limiter.Limit()))
	}
	return nil
}

// drawTokens takes n tokens in portions of at most the bucket's size.
func (b *bucket) drawTokens(ctx context.Context, n int) error {
	for n > 0 {
		portion := min(n, b.limiter.Burst())
		if err := b.limiter.WaitN(ctx, portion); err != nil {
			return err
		}
		n -= portion
	}
	return nil
}

// adaptRate adapts the rate to the result of a call.
func (b *bucket) adaptRate(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case fault.Is(err, fault.Throttled):
		if b.throttledAt.IsZero() || now.Sub(b.throttledAt) >= throttleCooldown {
			b.reduceRate(now)
		}
	case b.throttledAt.IsZero(), b.restoreLocked(now):
	default:
		b.raiseRate()
	}
}

// restoreRate restores the documented rate if no call was throttled for recoveryTime. Callers do it
// before they wait, because at a low rate it is possible that no caller gets a token and calls
// adaptRate.
func (b *bucket) restoreRate(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restoreLocked(now)
}

// restoreLocked is restoreRate for callers that hold mu. It reports whether it restored
// the rate.
func (b *bucket) restoreLocked(now time.Time) bool {
	if b.throttledAt.IsZero() || now.Sub(b.throttledAt) < recoveryTime {
		return false
	}
	b.throttledAt = time.Time{}
	b.setRate(b.rate.PerSecond)
	return true
}

func (b *bucket) reduceRate(now time.Time) {
	b.throttledAt = now
	limit := float64(b.limiter.Limit())
	b.ceiling = limit * ceilingFactor
	// EC2's bucket is empty, so this one must be empty too.
	b.limiter.AllowN(now, max(0, int(b.limiter.TokensAt(now))))
	b.setRate(max(limit*backoffFactor, b.rate.PerSecond*minShare))
}

func (b *bucket) raiseRate() {
	limit := float64(b.limiter.Limit())
	if limit < b.ceiling {
		limit += (b.ceiling - limit) * climbShare
	}
	b.setRate(min(limit+b.rate.PerSecond*probeShare, b.rate.PerSecond))
}

func (b *bucket) setRate(limit float64) { b.limiter.SetLimit(rate.Limit(limit)) }
