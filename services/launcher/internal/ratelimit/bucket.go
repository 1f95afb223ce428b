package ratelimit

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// How a bucket learns that others draw from it too, or that the account has
// another quota. The factors keep the rate within a tenth of what EC2 gives once
// it is found, and a throttled call at most once in some hundred.
const (
	// backoffFactor is what is left of the rate after a throttled call, and ceiling where
	// the rate climbs quickly to again, as shares of the rate that was too much.
	backoffFactor, ceilingFactor = 0.7, 0.9
	// climbShare is the share of the way to the ceiling that a success is worth, and
	// probe the share of the documented rate beyond it.
	climbShare, probeShare = 0.2, 0.001
	// minShare is the share of the documented rate that always stays.
	minShare = 1.0 / 64
	// throttleCooldown is how long further throttled calls say nothing new: they were made at
	// the rate that is given up already.
	throttleCooldown = time.Second
	// recoveryTime is after how long without one all is as documented again.
	recoveryTime = 5 * time.Minute
)

// Rate is calls a second and how many may come at once.
type Rate struct{ PerSecond, Burst float64 }

// bucket is one of EC2's token buckets, as this process may draw from it.
type bucket struct {
	name  string
	rate  Rate
	mutex fairMutex

	mu      sync.Mutex
	limiter *rate.Limiter
	ceiling float64
	// throttledAt is when a call was throttled last; zero while none was.
	throttledAt time.Time
}

func newBucket(name string, r Rate) *bucket {
	return &bucket{name: name, rate: r, limiter: rate.NewLimiter(rate.Limit(r.PerSecond), max(1, int(r.Burst)))}
}

// waitForTokens takes n tokens when it is the cluster's turn. It fails at once where the
// context would end before: then the caller had better do something else.
func (b *bucket) waitForTokens(ctx context.Context, cluster string, n int) error {
	err := b.mutex.acquire(ctx, cluster)
	if err == nil {
		b.restoreRate(time.Now())
		err = b.drawTokens(ctx, n)
		b.mutex.release()
	}
	if err != nil {
		return fault.F("waiting for EC2's bucket of "+b.name, fault.Throttled,
			"%w: this launcher may draw %.3g a second", err, float64(b.limiter.Limit()))
	}
	return nil
}

// drawTokens draws in pieces no larger than the burst, for there never is more.
func (b *bucket) drawTokens(ctx context.Context, n int) error {
	for n > 0 {
		piece := min(n, b.limiter.Burst())
		if err := b.limiter.WaitN(ctx, piece); err != nil {
			return err
		}
		n -= piece
	}
	return nil
}

// adaptRate adapts the rate to how a call ended.
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

// restoreRate gives the bucket its documented rate back once no call was throttled for a
// while. Callers do it before they wait: at a low rate none may get a token and learn.
func (b *bucket) restoreRate(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restoreLocked(now)
}

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
	// What EC2 had in store is used up.
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
