package ratelimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher/internal/ratelimit"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// newAccount returns a model of EC2 and a request for a fleet.
func newAccount(t *testing.T, divisor float64) (*memcloud.Cloud, cloud.FleetRequest) {
	t.Helper()
	model := memcloud.New(memcloud.Options{Now: time.Now, RateDivisor: divisor})
	world := model.Furnish("prod")
	if err := model.EnsureTemplate(t.Context(), cloud.Template{Name: "template", ImageID: world.ImageAMD64.ID}); err != nil {
		t.Fatal(err)
	}
	return model, cloud.FleetRequest{Count: 1, CapacityType: cloud.OnDemand, Configs: []cloud.FleetConfig{{
		Template: "template", Overrides: []cloud.Override{{InstanceType: "m6i.large", SubnetID: world.Subnets[0].ID}},
	}}}
}

// retryThrottled repeats the call while it is throttled.
func retryThrottled(t *testing.T, call func() error) {
	t.Helper()
	for {
		err := call()
		if err == nil {
			return
		}
		if !fault.Is(err, fault.Throttled) {
			t.Error(err)
			return
		}
		time.Sleep(time.Second)
	}
}

// Calls of each kind reach the documented rate without being throttled.
func TestDocumentedRatesAreReached(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls int
		// seconds are (calls - burst) / rate.
		seconds float64
		call    func(ctx context.Context, ec2 ratelimit.EC2, request cloud.FleetRequest) error
	}{
		{"reads", 300, 10, func(ctx context.Context, ec2 ratelimit.EC2, _ cloud.FleetRequest) error {
			_, err := ec2.DescribeInstances(ctx, cloud.InstanceFilter{IDs: []string{"i-0"}})
			return err
		}},
		{"launches", 25, 10, func(ctx context.Context, ec2 ratelimit.EC2, r cloud.FleetRequest) error {
			_, err := ec2.CreateFleet(ctx, r)
			return err
		}},
		{"launches of 100 instances each", 11, 50, func(ctx context.Context, ec2 ratelimit.EC2, r cloud.FleetRequest) error {
			r.Count = 100
			_, err := ec2.CreateFleet(ctx, r)
			return err
		}},
		{"terminations", 150, 10, func(ctx context.Context, ec2 ratelimit.EC2, _ cloud.FleetRequest) error {
			return ec2.Terminate(ctx, []string{"i-0"})
		}},
		{"tags", 200, 10, func(ctx context.Context, ec2 ratelimit.EC2, _ cloud.FleetRequest) error {
			if err := ec2.Tag(ctx, []string{"i-0"}, map[string]string{"a": "b"}); !fault.Is(err, fault.Missing) {
				return err
			}
			return nil
		}},
		{"templates", 99, 10, func(ctx context.Context, ec2 ratelimit.EC2, _ cloud.FleetRequest) error {
			return ec2.DeleteTemplate(ctx, "none")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model, request := newAccount(t, 1)
				// Wait until the model's buckets are full.
				time.Sleep(time.Hour)
				ec2 := ratelimit.New(1).ForCluster("prod", model)
				began := time.Now()
				var group sync.WaitGroup
				for range test.calls {
					group.Go(func() { retryThrottled(t, func() error { return test.call(t.Context(), ec2, request) }) })
				}
				group.Wait()
				took := time.Since(began).Seconds()
				if took < test.seconds*0.95 || took > test.seconds*1.2+1 {
					t.Errorf("took %.1f s; the bucket's minimum is %.1f s", took, test.seconds)
				}
				for action, n := range model.Counts() {
					if n.Throttled > 0 {
						t.Errorf("%s was throttled %d times", action, n.Throttled)
					}
				}
			})
		})
	}
}

// A share above one reaches the raised rates of an account. In an account without these it is reduced to what EC2 allows.
func TestRaisedRates(t *testing.T) {
	for _, test := range []struct {
		name      string
		divisor   float64
		seconds   float64
		throttled int
	}{
		{"raised", 0.1, 50.0 / 20, 0},
		{"not raised", 1, 95.0 / 2, 2 * 95},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model, request := newAccount(t, test.divisor)
				time.Sleep(time.Hour) // Until the model's buckets are full.
				ec2 := ratelimit.New(10).ForCluster("prod", model)
				began := time.Now()
				var group sync.WaitGroup
				for range 100 {
					group.Go(func() {
						retryThrottled(t, func() error { _, err := ec2.CreateFleet(t.Context(), request); return err })
					})
				}
				group.Wait()
				took, throttled := time.Since(began).Seconds(), 0
				for _, n := range model.Counts() {
					throttled += n.Throttled
				}
				if took > test.seconds*1.5+1 || throttled > test.throttled {
					t.Errorf("took %.1f s, and %d calls were throttled; the minimum is %.1f s, and at most %d may be", took, throttled, test.seconds, test.throttled)
				}
			})
		})
	}
}

// Each of three clusters gets every third token, although one makes many more calls.
func TestClustersShareTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, 1)
		time.Sleep(time.Hour)
		limiter := ratelimit.New(1)
		var mu sync.Mutex
		var order []string
		launch := func(cluster string) {
			if _, err := limiter.ForCluster(cluster, model).CreateFleet(t.Context(), request); err == nil {
				mu.Lock()
				order = append(order, cluster)
				mu.Unlock()
			}
		}
		var group sync.WaitGroup
		for range 200 {
			group.Go(func() { launch("greedy") })
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		from := len(order)
		for range 3 {
			group.Go(func() { launch("modest") })
			group.Go(func() { launch("shy") })
		}
		group.Wait()
		if i := slices.Index(order[from:], "modest"); i < 0 || i > 4 {
			t.Errorf("the modest cluster waited for %d calls of others: %v", i, order[from:])
		}
		served := order[from:min(len(order), from+12)]
		for _, cluster := range []string{"modest", "shy"} {
			n := 0
			for _, other := range served {
				if other == cluster {
					n++
				}
			}
			if n != 3 {
				t.Errorf("%s had %d of the next 12 turns: %v", cluster, n, served)
			}
		}
	})
}

// A cluster whose only waiting call ends loses its turn, and one with another call keeps it.
func TestCancelledCallsLoseTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, 1)
		limiter := ratelimit.New(1)
		var group sync.WaitGroup
		defer group.Wait()
		for range 20 {
			group.Go(func() { _, _ = limiter.ForCluster("greedy", model).CreateFleet(t.Context(), request) })
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for _, cluster := range []string{"ended", "both"} {
			group.Go(func() {
				if _, err := limiter.ForCluster(cluster, model).CreateFleet(short, request); !fault.Is(err, fault.Throttled) {
					t.Errorf("the call of %s whose context ended returned %v", cluster, err)
				}
			})
		}
		synctest.Wait()
		for _, cluster := range []string{"both", "third"} {
			group.Go(func() {
				began := time.Now()
				if _, err := limiter.ForCluster(cluster, model).CreateFleet(t.Context(), request); err != nil || time.Since(began) > 3*time.Second {
					t.Errorf("the call of %s returned %v after %s", cluster, err, time.Since(began))
				}
			})
		}
	})
}

// A call that would wait too long returns within MaxWait and is not made.
func TestMaxWaitIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, 1)
		ec2 := ratelimit.New(1).ForCluster("prod", model)
		var group sync.WaitGroup
		var mu sync.Mutex
		kinds := map[fault.Kind]int{}
		began := time.Now()
		for range 100 {
			group.Go(func() {
				_, err := ec2.CreateFleet(t.Context(), request)
				mu.Lock()
				kinds[fault.KindOf(err)]++
				mu.Unlock()
			})
		}
		group.Wait()
		// The bucket has five tokens and gets two a second during MaxWait.
		if kinds[""] < 20 || kinds[""] > 26 || kinds[""]+kinds[fault.Throttled] != 100 {
			t.Errorf("unexpected kinds of errors: %v", kinds)
		}
		if took := time.Since(began); took > ratelimit.MaxWait {
			t.Errorf("a call waited for %s", took)
		}
		if calls := model.Counts()[memcloud.CreateFleet].Calls; calls != kinds[""] {
			t.Errorf("%d calls reached EC2, %d succeeded", calls, kinds[""])
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ec2.Terminate(ctx, []string{"i-0"}); err == nil {
			t.Error("a call with a cancelled context was made")
		}
	})
}

// If EC2 allows a quarter of the documented rate, because other clients use the rest, the
// limiter adapts within a minute: few calls are throttled, and most of the rate is used.
func TestRateAdapts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, 4)
		ec2 := ratelimit.New(1).ForCluster("prod", model)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				for ctx.Err() == nil {
					if _, err := ec2.CreateFleet(ctx, request); err != nil {
						time.Sleep(2 * time.Second)
					}
				}
			})
		}
		time.Sleep(time.Minute)
		before := model.Counts()[memcloud.CreateFleet]
		const minutes = 8
		time.Sleep(minutes * time.Minute)
		after := model.Counts()[memcloud.CreateFleet]
		cancel()
		group.Wait()
		throttled := after.Throttled - before.Throttled
		made := after.Calls - before.Calls - throttled
		const possible = minutes * 60 * 0.5
		t.Logf("%d of %.0f possible calls were made in %d minutes, and %d were throttled", made, possible, minutes, throttled)
		if float64(made) < possible/1.2 || throttled > made/5 {
			t.Errorf("%d of %.0f possible calls were made, %d throttled", made, possible, throttled)
		}
	})
}

// Without throttling for a while, the documented rate is restored.
func TestRateRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, -1)
		ec2 := ratelimit.New(1).ForCluster("prod", model)
		for range 3 {
			model.Refuse(memcloud.CreateFleet, fault.Throttled, "RequestLimitExceeded", "no")
			if _, err := ec2.CreateFleet(t.Context(), request); !fault.Is(err, fault.Throttled) {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(6 * time.Minute)
		for range 10 {
			retryThrottled(t, func() error { _, err := ec2.CreateFleet(t.Context(), request); return err })
		}
		began := time.Now()
		for range 10 {
			retryThrottled(t, func() error { _, err := ec2.CreateFleet(t.Context(), request); return err })
		}
		if took := time.Since(began); took > 5100*time.Millisecond {
			t.Errorf("ten launches took %s", took)
		}
	})
}

// throttlingEC2 answers the first CreateFleet calls with throttling inside the answer.
type throttlingEC2 struct {
	ratelimit.EC2
	calls int
}

func (e *throttlingEC2) CreateFleet(ctx context.Context, request cloud.FleetRequest) (cloud.FleetResult, error) {
	if e.calls--; e.calls >= 0 {
		return cloud.FleetResult{Errors: []cloud.FleetError{{Code: "RequestLimitExceeded"}}}, nil
	}
	return e.EC2.CreateFleet(ctx, request)
}

// The documented rate is restored five minutes after the last throttled call, although no
// call got its tokens in that time: a fleet of 50 then takes 25 s.
func TestRateRecoversWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, -1)
		const throttled = 12 // enough for the lowest rate
		ec2 := ratelimit.New(1).ForCluster("prod", &throttlingEC2{EC2: model, calls: throttled})
		for range throttled {
			time.Sleep(5 * time.Second)
			retryThrottled(t, func() error { _, err := ec2.CreateFleet(t.Context(), request); return err })
		}
		began := time.Now()
		request.Count = 50
		retryThrottled(t, func() error { _, err := ec2.CreateFleet(t.Context(), request); return err })
		if took := time.Since(began); took > 5*time.Minute+30*time.Second {
			t.Errorf("a fleet of 50 was launched %s after the last throttled call", took)
		}
	})
}

// OnCall receives the values of the metric.
func TestOnCallReceivesMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, request := newAccount(t, 1)
		limiter := ratelimit.New(0.2)
		var calls []string
		limiter.OnCall = func(cluster, bucket string, waited time.Duration, err error) {
			calls = append(calls, fmt.Sprintf("%s %s %s %s", cluster, bucket, waited.Round(time.Millisecond), fault.KindOf(err)))
		}
		ec2 := limiter.ForCluster("prod", model)
		for range 2 {
			if _, err := ec2.CreateFleet(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ec2.Terminate(ended, []string{"i-0"}); !fault.Is(err, fault.Throttled) {
			t.Errorf("Terminate = %v", err)
		}
		want := []string{
			"prod instances launched 0s ", "prod RunInstances 0s ", "prod instances launched 0s ", "prod RunInstances 2.5s ",
			"prod TerminateInstances 0s throttled",
		}
		if !slices.Equal(calls, want) {
			t.Errorf("got %q, want %q", calls, want)
		}
	})
}
