package memqueue

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func bodies(t *testing.T, q *Queue) []string {
	t.Helper()
	var out []string
	for _, m := range receive(t, q, time.Hour) {
		out = append(out, string(m.Body))
	}
	return out
}

func TestBusRoutes(t *testing.T) {
	b, inbox, dead, _ := newTestBroker(t, Faults{})
	audit := b.Queue("audit", QueueOptions{})
	bus := b.Bus("joist").SetAccount("210987654321", "us-east-2")
	for _, rule := range []Rule{
		{Name: "inbox", Pattern: `{"source": [{"prefix": "joist/"}], "detail": {"cluster": ["a"]}}`,
			Targets: []Target{{Queue: "q", InputPath: "$.detail"}}},
		{Name: "audit", Pattern: `{"source": [{"prefix": ""}]}`, Targets: []Target{{Queue: "audit"}}},
		{Name: "broken", Pattern: `{"detail-type": ["lost.v1"]}`, Targets: []Target{{Queue: "gone", DeadLetter: "q-dead"}}},
	} {
		if err := bus.PutRule(rule); err != nil {
			t.Fatal(err)
		}
	}
	body := `{"cluster": "a", "html": "<&>", "big": 12345678901234567890}`
	if err := bus.Send(t.Context(),
		queue.Outgoing{Source: "joist/planner", Type: "plan.made.v1", Body: []byte(body)},
		queue.Outgoing{Source: "joist/planner", Type: "lost.v1", Body: []byte(`{"cluster":"b"}`)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"cluster":"a","html":"<&>","big":12345678901234567890}`}, bodies(t, inbox)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"joist"}, b.Buses()); diff != "" {
		t.Error(diff)
	}
	whole := bodies(t, audit)
	if len(whole) != 2 || len(bodies(t, dead)) != 1 {
		t.Fatalf("messages of the queue audit = %v", whole)
	}
	id := whole[0][len(`{"version":"0","id":"`):][:36]
	want := `{"version":"0","id":"` + id + `","detail-type":"plan.made.v1","source":"joist/planner","account":"210987654321",` +
		`"time":"2026-11-20T12:00:00Z","region":"us-east-2","resources":[],"detail":{"cluster":"a","html":"<&>","big":12345678901234567890}}`
	if diff := cmp.Diff(want, whole[0]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(BusStats{Taken: 2, Routed: 4}, bus.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestBusPutAndReplay(t *testing.T) {
	b, q, _, c := newTestBroker(t, Faults{})
	bus := b.Bus("default")
	if err := bus.PutRule(Rule{Name: "spot", Pattern: `{"source":["aws.ec2"]}`, Targets: []Target{{Queue: "q"}}}); err != nil {
		t.Fatal(err)
	}
	if err := bus.PutEvent([]byte(`{"source":"aws.ec2","detail":{}}`)); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Minute)
	for range 2 {
		if n, err := bus.Replay("again", epoch, c.now, "spot"); n != 1 || err != nil {
			t.Fatalf("replayed %d, %v", n, err)
		}
	}
	again := `{"replay-name":"again","source":"aws.ec2","detail":{}}`
	if diff := cmp.Diff([]string{`{"source":"aws.ec2","detail":{}}`, again, again}, bodies(t, q)); diff != "" {
		t.Error(diff)
	}
	b.SetFaults(Faults{LoseEvent: 1})
	if err := bus.PutEvent([]byte(`{"source":"aws.ec2"}`)); err != nil || b.Counts()[EventLost] != 1 || len(bodies(t, q)) != 0 {
		t.Errorf("lost event: %v, %v", err, b.Counts())
	}
	if err := bus.PutEvent([]byte(`[]`)); !fault.Is(err, fault.Invalid) {
		t.Errorf("putting an array on the bus: %v", err)
	}
}

func TestBusRefuses(t *testing.T) {
	b, _, _, _ := newTestBroker(t, Faults{})
	bus := b.Bus("joist")
	for name, m := range map[string]queue.Outgoing{
		"no source":     {Type: "t", Body: []byte(`{}`)},
		"no type":       {Source: "s", Body: []byte(`{}`)},
		"AWS's source":  {Source: "aws.ec2", Type: "t", Body: []byte(`{}`)},
		"not an object": {Source: "s", Type: "t", Body: []byte(`[]`)},
		"not JSON":      {Source: "s", Type: "t", Body: []byte(`{`)},
		"nothing":       {Source: "s", Type: "t"},
		"too large":     {Source: "s", Type: "t", Body: append([]byte(`{}`), make([]byte, MaxEntry)...)},
	} {
		if err := bus.Send(t.Context(), m); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := bus.PutRule(Rule{Name: "r", Pattern: `{`}); !fault.Is(err, fault.Invalid) {
		t.Errorf("rule with a malformed pattern: %v", err)
	}
	if err := bus.PutRule(Rule{Name: "r", Pattern: `{"a":["x"]}`, Targets: []Target{{InputPath: "detail"}}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("rule with an input path without $: %v", err)
	}
}

func TestBusFaults(t *testing.T) {
	b, q, _, _ := newTestBroker(t, Faults{RouteTwice: 1})
	bus := b.Bus("joist")
	if err := bus.PutRule(Rule{Name: "r", Pattern: `{"source":["s"]}`, Targets: []Target{{Queue: "q", InputPath: "$.detail"}}}); err != nil {
		t.Fatal(err)
	}
	send(t, bus, `{"n":1}`)
	if got := bodies(t, q); len(got) != 2 || b.Counts()[RoutedTwice] != 1 {
		t.Errorf("%v, %v", got, b.Counts())
	}
	m := queue.Outgoing{Source: "s", Type: "t", Body: []byte(`{}`)}
	b.SetFaults(Faults{FailSend: 1})
	if err := bus.Send(t.Context(), m); !fault.Is(err, fault.Retry) || len(bodies(t, q)) != 0 {
		t.Errorf("failed send: %v", err)
	}
	b.SetFaults(Faults{LoseSendAnswer: 1})
	if err := bus.Send(t.Context(), m); !fault.Is(err, fault.Unknown) || len(bodies(t, q)) != 1 {
		t.Errorf("lost response: %v", err)
	}
	b.SetFaults(Faults{})
	if err := b.CheckConservation(); err != nil {
		t.Error(err)
	}
}

// EventBridge may deliver after seconds or hours. SQS accepts the message then.
func TestBusDelays(t *testing.T) {
	b, q, _, c := newTestBroker(t, Faults{DelayEvent: 1})
	bus := b.Bus("joist")
	if err := bus.PutRule(Rule{Name: "r", Pattern: `{"source":["s"]}`, Targets: []Target{{Queue: "q", InputPath: "$.detail"}}}); err != nil {
		t.Fatal(err)
	}
	const events = 40
	arrived := map[string]int{}
	for range events {
		send(t, bus, `{"n":1}`)
		at := q.NextVisible()
		switch delay := at.Sub(c.now); {
		case delay < minEventDelay || delay > MaxEventDelay:
			t.Fatalf("delayed for %s", delay)
		case delay < time.Minute:
			arrived["seconds"]++
		case delay < time.Hour:
			arrived["minutes"]++
		default:
			arrived["hours"]++
		}
		c.now = at
		messages := receive(t, q, time.Minute)
		if len(messages) != 1 || !messages[0].Sent.Equal(at) {
			t.Fatalf("at %s: %+v", at, messages)
		}
		if err := q.Delete(t.Context(), messages[0].Receipt); err != nil {
			t.Fatal(err)
		}
	}
	if len(arrived) != 3 || b.Counts()[EventDelayed] != events {
		t.Errorf("%v, %v", arrived, b.Counts())
	}
}
