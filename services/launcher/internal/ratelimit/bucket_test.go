package ratelimit

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// requireRate requires the bucket's rate in tokens per second.
func requireRate(t *testing.T, when string, b *bucket, want float64) {
	t.Helper()
	if got := float64(b.limiter.Limit()); math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: the rate is %g tokens a second, want %g", when, got, want)
	}
}

// A throttled call empties the bucket and reduces its rate at most once a second. Successes raise it, quickly up to a tenth below the
// rate that was throttled. Five minutes after the last throttled call the rate is the documented one.
func TestRateFollowsResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBucket("calls", Rate{PerSecond: 10, Burst: 5})
		throttled := fault.E("calling", fault.Throttled, nil)
		b.adaptRate(nil)
		requireRate(t, "a success", b, 10)
		b.adaptRate(throttled)
		requireRate(t, "throttled", b, 7)
		if tokens := b.limiter.Tokens(); tokens != 0 {
			t.Errorf("the bucket has %g tokens after a throttled call", tokens)
		}
		time.Sleep(throttleCooldown - 1)
		b.adaptRate(throttled)
		requireRate(t, "throttled within a second", b, 7)
		time.Sleep(time.Nanosecond)
		b.adaptRate(throttled)
		requireRate(t, "throttled after a second", b, 4.9)
		b.adaptRate(nil)
		requireRate(t, "a success below the ceiling of 6.3", b, 4.9+0.2*1.4+0.01)
		b.adaptRate(fault.E("calling", fault.Denied, nil))
		requireRate(t, "another error below the ceiling", b, 5.19+0.2*1.11+0.01)
		for range 1000 {
			b.adaptRate(nil)
		}
		requireRate(t, "many successes", b, 10)
		b.adaptRate(throttled)
		requireRate(t, "throttled within a second", b, 10)
		time.Sleep(throttleCooldown)
		b.adaptRate(throttled)
		requireRate(t, "throttled again", b, 7)
		time.Sleep(recoveryTime - 1)
		b.restoreRate(time.Now())
		requireRate(t, "almost five minutes later", b, 7)
		time.Sleep(time.Nanosecond)
		b.adaptRate(nil)
		requireRate(t, "five minutes later", b, 10)
	})
}

// A caller that no longer waits does not release the mutex of another.
func TestCancelledWaitKeepsTheMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fairMutex
		if err := g.acquire(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		for _, cluster := range []string{"second", "third"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := g.acquire(ctx, cluster); err == nil {
				t.Errorf("%s acquired the mutex that the first cluster holds", cluster)
			}
			cancel()
		}
		g.release()
		if err := g.acquire(t.Context(), "fourth"); err != nil {
			t.Error(err)
		}
	})
}

// fullEC2 reports in its answer that its bucket of instances is empty.
type fullEC2 struct {
	EC2
	code string
}

func (e fullEC2) CreateFleet(context.Context, cloud.FleetRequest) (cloud.FleetResult, error) {
	return cloud.FleetResult{Errors: []cloud.FleetError{{Code: e.code}}}, nil
}

// An error in the answer of CreateFleet reduces the rate of instances only if it says that requests are limited.
func TestErrorsInAnswersAdaptTheRate(t *testing.T) {
	for code, want := range map[string]float64{"RequestLimitExceeded": 1.4, "InsufficientInstanceCapacity": 2} {
		limiter := New(1)
		if _, err := limiter.ForCluster("prod", fullEC2{code: code}).CreateFleet(t.Context(), cloud.FleetRequest{Count: 1}); err != nil {
			t.Fatal(err)
		}
		requireRate(t, code, limiter.buckets[bucketInstances], want)
		requireRate(t, code, limiter.buckets[bucketLaunches], 2)
	}
}
