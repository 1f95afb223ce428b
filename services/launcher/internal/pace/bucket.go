package pace

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
	// backOff is what is left of the rate after a throttled call, and ceiling where
	// the rate climbs quickly to again, as shares of the rate that was too much.
	backOff, ceiling = 0.7, 0.9
	// climb is the share of the way to the ceiling that a success is worth, and
	// probe the share of the documented rate beyond it.
	climb, probe = 0.2, 0.001
	// floor is the share of the documented rate that always stays.
	floor = 1.0 / 64
	// deaf is how long further throttled calls say nothing new: they were made at
	// the rate that is given up already.
	deaf = time.Second
	// forgotten is after how long without one all is as documented again.
	forgotten = 5 * time.Minute
)

// Rate is calls a second and how many may come at once.
type Rate struct{ PerSecond, Burst float64 }

// bucket is one of EC2's token buckets, as this process may draw from it.
type bucket struct {
	name string
	rate Rate
	gate gate

	mu      sync.Mutex
	limiter *rate.Limiter
	ceiling float64
	// throttled is when a call was throttled last; zero while none was.
	throttled time.Time
}

func newBucket(name string, r Rate) *bucket {
	return &bucket{name: name, rate: r, limiter: rate.NewLimiter(rate.Limit(r.PerSecond), max(1, int(r.Burst)))}
}

// wait takes n tokens when it is the cluster's turn. It fails at once where the
// context would end before: then the caller had better do something else.
func (b *bucket) wait(ctx context.Context, cluster string, n int) error {
	err := b.gate.enter(ctx, cluster)
	if err == nil {
		b.restore(time.Now())
		err = b.take(ctx, n)
		b.gate.leave()
	}
	if err != nil {
		return fault.F("waiting for EC2's bucket of "+b.name, fault.Throttled,
			"%w: this launcher may draw %.3g a second", err, float64(b.limiter.Limit()))
	}
	return nil
}

// take draws in pieces no larger than the burst, for there never is more.
func (b *bucket) take(ctx context.Context, n int) error {
	for n > 0 {
		piece := min(n, b.limiter.Burst())
		if err := b.limiter.WaitN(ctx, piece); err != nil {
			return err
		}
		n -= piece
	}
	return nil
}

// learn adapts the rate to how a call ended.
func (b *bucket) learn(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case fault.Is(err, fault.Throttled):
		if b.throttled.IsZero() || now.Sub(b.throttled) >= deaf {
			b.slow(now)
		}
	case b.throttled.IsZero(), b.restored(now):
	default:
		b.hasten()
	}
}

// restore gives the bucket its documented rate back once no call was throttled for a
// while. Callers do it before they wait: at a low rate none may get a token and learn.
func (b *bucket) restore(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restored(now)
}

func (b *bucket) restored(now time.Time) bool {
	if b.throttled.IsZero() || now.Sub(b.throttled) < forgotten {
		return false
	}
	b.throttled = time.Time{}
	b.set(b.rate.PerSecond)
	return true
}

func (b *bucket) slow(now time.Time) {
	b.throttled = now
	limit := float64(b.limiter.Limit())
	b.ceiling = limit * ceiling
	// What EC2 had in store is used up.
	b.limiter.AllowN(now, max(0, int(b.limiter.TokensAt(now))))
	b.set(max(limit*backOff, b.rate.PerSecond*floor))
}

func (b *bucket) hasten() {
	limit := float64(b.limiter.Limit())
	if limit < b.ceiling {
		limit += (b.ceiling - limit) * climb
	}
	b.set(min(limit+b.rate.PerSecond*probe, b.rate.PerSecond))
}

func (b *bucket) set(limit float64) { b.limiter.SetLimit(rate.Limit(limit)) }
