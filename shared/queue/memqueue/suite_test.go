package memqueue_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/queue/queuetest"
)

func TestSuite(t *testing.T) {
	queuetest.Run(t, subject)
}

// A queue with shared calls passes the same suite.
func TestSuiteOfSharedCalls(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Subject {
		s := subject(t)
		s.Queue, s.Dead, s.Bus = queue.BatchCalls(s.Queue, 2), queue.BatchCalls(s.Dead, 2), queue.BatchSends(s.Bus, 2)
		return s
	})
}

func subject(t *testing.T) queuetest.Subject {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	broker := memqueue.New(memqueue.Options{Now: clock, Seed: 1})
	dead := broker.Queue("q-dead", memqueue.QueueOptions{})
	bus := broker.Bus("joist")
	if err := bus.PutRule(memqueue.Rule{
		Name: "q", Pattern: `{"source": ["` + queuetest.BusSource + `"]}`,
		Targets: []memqueue.Target{{Queue: "q", InputPath: "$.detail"}},
	}); err != nil {
		t.Fatal(err)
	}
	return queuetest.Subject{
		Queue: broker.Queue("q", memqueue.QueueOptions{MaxReceives: 3, DeadLetter: "q-dead"}),
		Dead:  dead, MaxReceives: 3, Bus: bus,
		Now: clock, Advance: func(d time.Duration) { now = now.Add(d) },
		Features: queuetest.Features{Bus: true, Strict: true, Jumps: true},
	}
}
