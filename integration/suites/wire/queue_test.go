package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/eventbus"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/queue/queuetest"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// TestQueueSuite runs the conformance suite on the adapters of SQS and EventBridge.
func TestQueueSuite(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Subject {
		w := start(t)
		w.broker.Queue("q-dead", memqueue.QueueOptions{})
		w.broker.Queue("q", memqueue.QueueOptions{MaxReceives: 3, DeadLetter: "q-dead"})
		if err := w.broker.Bus("joist").PutRule(memqueue.Rule{
			Name: "q", Pattern: `{"source": ["` + queuetest.BusSource + `"]}`,
			Targets: []memqueue.Target{{Queue: "q", InputPath: "$.detail"}},
		}); err != nil {
			t.Fatal(err)
		}
		config := productionConfig(t, w.Server)
		return queuetest.Subject{
			Queue:       sqsqueue.New(config, w.QueueURL("q"), "JOIST_QUEUE_URL"),
			Dead:        sqsqueue.New(config, w.QueueURL("q-dead"), "JOIST_DEAD_URL"),
			MaxReceives: 3,
			Bus:         eventbus.New(config, "joist", "JOIST_BUS"),
			Now:         w.clock.Now, Advance: w.clock.Advance,
			Features: queuetest.Features{Bus: true, Strict: true, Waits: true, Jumps: true},
		}
	})
}

func TestMissingQueueAndBusHaveHints(t *testing.T) {
	w := start(t)
	q := sqsqueue.New(w.Config(), w.QueueURL("gone"), "JOIST_QUEUE_URL")
	bus := eventbus.New(w.Config(), "gone", "JOIST_BUS")
	m := queue.Outgoing{Source: "joist/test", Type: "test.v1", Body: []byte(`{}`)}
	_, receive := q.Receive(t.Context(), 1, 0, time.Second)
	_, _, depth := q.Depth(t.Context())
	for doing, err := range map[string]error{
		"sending": q.Send(t.Context(), m), "receiving": receive, "deleting": q.Delete(t.Context(), "r"), "measuring": depth,
	} {
		if !fault.Is(err, fault.Missing) || !strings.Contains(fault.FindHint(err), "JOIST_QUEUE_URL") {
			t.Errorf("%s returned %v of kind %q", doing, err, fault.KindOf(err))
		}
	}
	if err := bus.Send(t.Context(), m); !fault.Is(err, fault.Missing) || !strings.Contains(fault.FindHint(err), "JOIST_BUS") {
		t.Errorf("the bus returned %v of kind %q", err, fault.KindOf(err))
	}
}

// TestFaultsOnTheWire sends until every message is accepted, through a broker that fails
// entries, loses responses and duplicates; no message may be lost.
func TestFaultsOnTheWire(t *testing.T) {
	w := start(t)
	w.broker.Queue("q", memqueue.QueueOptions{})
	q := sqsqueue.New(w.Config(), w.QueueURL("q"), "JOIST_QUEUE_URL")
	w.broker.SetFaults(memqueue.Faults{FailSend: .2, LoseSendAnswer: .02, FailDelete: .1, Duplicate: .1, Reorder: .5})
	const messages = 60
	for n := range messages {
		m := queue.Outgoing{Source: "joist/test", Type: "test.v1", Body: fmt.Appendf(nil, "%d", n)}
		if err := until(10, func() error { return q.Send(t.Context(), m) }); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range 40 * messages {
		got, err := q.Receive(t.Context(), 10, 0, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got {
			seen[string(m.Body)] = true
			if err := until(10, func() error { return q.Delete(t.Context(), m.Receipt) }); err != nil {
				t.Fatal(err)
			}
		}
		if visible, hidden, err := q.Depth(t.Context()); err != nil || visible+hidden == 0 {
			break
		}
		if len(got) == 0 {
			w.clock.Advance(10 * time.Second)
		}
	}
	counts := w.broker.Counts()
	for _, want := range []memqueue.Fault{memqueue.SendFailed, memqueue.DeleteFailed, memqueue.Duplicated, memqueue.Reordered} {
		if counts[want] == 0 {
			t.Errorf("the fault %s was never injected: %v", want, counts)
		}
	}
	if err := w.broker.CheckConservation(); err != nil || len(seen) != messages {
		t.Errorf("%d of %d messages arrived, %v, %v", len(seen), messages, err, counts)
	}
}

// until retries an operation, as a caller of the port would.
func until(times int, do func() error) (err error) {
	for range times {
		if err = do(); err == nil || !slices.Contains([]fault.Kind{fault.Retry, fault.Unknown}, fault.KindOf(err)) {
			return err
		}
	}
	return err
}
