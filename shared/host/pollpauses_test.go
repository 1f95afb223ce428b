package host_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// unavailable is a queue whose receives fail. It records when they are called.
type unavailable struct {
	*bench
	received *[]time.Time
}

func (u unavailable) Receive(context.Context, int, time.Duration, time.Duration) ([]queue.Message, error) {
	*u.received = append(*u.received, time.Now())
	return nil, fault.E("receiving", fault.Retry, errAway)
}

// Pauses begin short, grow up to MaxRetryPause, never exceed it, and differ, so that several pollers spread their calls.
func TestPollPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longest = 10 * time.Second
		b := newBench()
		var received []time.Time
		w := b.worker(returns(nil))
		w.Queue = unavailable{b, &received}
		stop := polling(t, w, host.Options{MaxRetryPause: longest})
		time.Sleep(3 * time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		var pauses []time.Duration
		for i := range received[1:] {
			pauses = append(pauses, received[i+1].Sub(received[i]))
		}
		if pauses[0] > time.Second {
			t.Errorf("the first pause is %s", pauses[0])
		}
		grown := pauses[12:]
		if least, most := slices.Min(grown), slices.Max(grown); least < 6*time.Second || least > 7*time.Second || most < 9*time.Second || most > longest {
			t.Errorf("%d pauses from %s to %s, want the whole range from 6 s to %s", len(grown), least, most, longest)
		}
	})
}
