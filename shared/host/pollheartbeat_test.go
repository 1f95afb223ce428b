package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// replacedReceive is a queue whose receive is replaced by a function.
type replacedReceive struct {
	*bench
	receive func(ctx context.Context) error
}

func (r replacedReceive) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := r.receive(ctx); err != nil {
		return nil, err
	}
	return r.bench.Receive(ctx, limit, wait, visibility)
}

// A poller is alive while SQS or the API server is unavailable, because a restart would not help. A poller that hangs
// is not.
func TestPollIsAliveDuringOutage(t *testing.T) {
	away := fault.E("calling", fault.Retry, errAway)
	for _, c := range []struct {
		name string
		// receive, mayReceive and handle are called during the outage. The test closes hung at its end.
		receive, mayReceive, handle func(ctx context.Context, hung <-chan struct{}) error
		isAlive                     bool
	}{
		{name: "no outage", isAlive: true},
		{name: "SQS refuses connections", receive: func(context.Context, <-chan struct{}) error { return away }, isAlive: true},
		{name: "SQS does not answer", receive: func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }, isAlive: true},
		{name: "SQS denies access", receive: func(context.Context, <-chan struct{}) error { return fault.E("receiving", fault.Denied, errAway) }, isAlive: true},
		{name: "the API server does not renew the Leases", mayReceive: func(context.Context, <-chan struct{}) error { return away }, isAlive: true},
		{name: "a receive hangs", receive: func(_ context.Context, hung <-chan struct{}) error { <-hung; return away }},
		{name: "MayReceive hangs", mayReceive: func(_ context.Context, hung <-chan struct{}) error { <-hung; return away }},
		{name: "all handlers hang", handle: func(_ context.Context, hung <-chan struct{}) error { <-hung; return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, hung := time.Now(), make(chan struct{})
				call := func(ctx context.Context, f func(context.Context, <-chan struct{}) error) error {
					if f == nil || time.Since(began) < time.Minute {
						return nil
					}
					return f(ctx, hung)
				}
				pulse := &telemetry.Heartbeat{Name: "the poller", Limit: 5 * time.Minute}
				pulse.Record()
				b := newBench()
				w := b.worker(func(ctx context.Context, _ queue.Message) error { return call(ctx, c.handle) })
				w.Queue = replacedReceive{b, func(ctx context.Context) error { return call(ctx, c.receive) }}
				stop := polling(t, w, host.Options{MaxConcurrent: 2, Heartbeat: pulse.Record, MayReceive: func(ctx context.Context) (bool, error) {
					err := call(ctx, c.mayReceive)
					return err == nil, err
				}})
				time.Sleep(90 * time.Second)
				b.put(2)
				time.Sleep(6 * time.Minute)
				if err := pulse.Check(); (err == nil) != c.isAlive {
					t.Errorf("the liveness probe returns %v", err)
				}
				close(hung)
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
