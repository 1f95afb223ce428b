package effect_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// slowClient takes a while to accept an Event, or never accepts it.
type slowClient struct {
	cluster.Client
	takes            time.Duration
	begun, published atomic.Int64
	gaveUp, under    atomic.Int64
	most             atomic.Int64
}

func (d *slowClient) Report(ctx context.Context, _ cluster.Event) error {
	d.begun.Add(1)
	d.most.Store(max(d.most.Load(), d.under.Add(1)))
	defer d.under.Add(-1)
	select {
	case <-time.After(d.takes):
		d.published.Add(1)
		return nil
	case <-ctx.Done():
		d.gaveUp.Add(1)
		return ctx.Err()
	}
}

// Callers never wait for an Event, even if the API server accepts none. Excess Events are
// dropped.
func TestEventQueue(t *testing.T) {
	for name, test := range map[string]struct {
		takes         time.Duration
		events        int
		heard, gaveUp int64
	}{
		"all Events are published":                  {time.Second, 100, 100, 0},
		"unanswered calls time out":                 {time.Hour, 16, 0, 16},
		"the latest of too many Events are dropped": {time.Second, 5000, 4096 + 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &slowClient{takes: test.takes}
				doer := effect.Executor{Client: client, Events: effect.NewEventQueue(client)}
				look, end := context.WithCancel(t.Context())
				began := time.Now()
				for i := range test.events {
					if err := doer.Execute(look, nil, effect.Report{}); err != nil {
						t.Fatal(err)
					}
					if i < 8 {
						synctest.Wait()
					}
				}
				end()
				if waited := time.Since(began); waited != 0 {
					t.Errorf("the caller waited %s", waited)
				}
				time.Sleep(time.Hour)
				if client.published.Load() != test.heard || client.gaveUp.Load() != test.gaveUp || client.most.Load() > 8 {
					t.Errorf("%d published and %d timed out, at most %d at once", client.published.Load(), client.gaveUp.Load(), client.most.Load())
				}
			})
		})
	}
}
