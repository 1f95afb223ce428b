package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestNewEventHandler(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*event.Envelope)
		garble  bool
		after   time.Duration // how long after its creation the envelope is handled
		types   []event.Type
		handled bool
		kind    fault.Kind
	}{
		{name: "own cluster, not expired", handled: true},
		{name: "own cluster without a UID", change: func(e *event.Envelope) { e.ClusterUID = "" }, handled: true},
		{name: "another cluster", change: func(e *event.Envelope) { e.Cluster = "test" }, kind: fault.Foreign},
		{name: "another cluster of the same name", change: func(e *event.Envelope) { e.ClusterUID = "uid-2" }, kind: fault.Foreign},
		{name: "just before expiry", change: expiring, after: event.MinTTL - time.Nanosecond, handled: true},
		{name: "at expiry", change: expiring, after: event.MinTTL, kind: fault.Stale},
		{name: "a type for another service", types: []event.Type{event.PlanMadeType}, kind: fault.Poison},
		{name: "another cluster, expired and misrouted", change: func(e *event.Envelope) { e.Cluster = "test" }, after: 24 * time.Hour,
			types: []event.Type{event.PlanMadeType}, kind: fault.Foreign},
		{name: "no envelope", garble: true, kind: fault.Poison},
		{name: "unknown major version", change: func(e *event.Envelope) { e.Type = "tick.v99" }, kind: fault.Poison},
		{name: "sender's clock is ahead", change: ahead, handled: true},
		{name: "sender's clock is ahead, just before expiry since the send", change: ahead, after: event.TickType.TTL() + host.MaxSkew - time.Nanosecond, handled: true},
		{name: "sender's clock is ahead, expired since the send", change: ahead, after: event.TickType.TTL() + host.MaxSkew, kind: fault.Stale},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := tick(t, noon, c.change)
			if c.garble {
				body = body[:len(body)/2]
			}
			accept := host.EnvelopeFilter{Cluster: ours, Types: c.types, Now: func() time.Time { return noon.Add(c.after) }}
			if accept.Types == nil {
				accept.Types = []event.Type{event.TickType}
			}
			handled := false
			err := host.NewEventHandler(accept, func(context.Context, event.Envelope) error { handled = true; return nil })(t.Context(),
				queue.Message{ID: "m", Body: body, Receives: 1, Sent: noon})
			if handled != c.handled || fault.KindOf(err) != c.kind {
				t.Errorf("handled %t, error %v; want %t, kind %q", handled, err, c.handled, c.kind)
			}
		})
	}
}

// ahead sets the times of a sender, or a forger, whose clock is hours ahead.
func ahead(e *event.Envelope) { e.Time, e.Expires = noon.Add(5*time.Hour), noon.Add(1000*time.Hour) }

func expiring(e *event.Envelope) { e.Expires = e.Time.Add(event.MinTTL) }

// The log line describes the envelope, even if it was dropped.
func TestEnvelopeLogFields(t *testing.T) {
	note := func(t *testing.T, body []byte, sent time.Time) host.LogFields {
		t.Helper()
		b := newBench()
		w := b.worker(host.NewEventHandler(host.EnvelopeFilter{Cluster: ours, Types: []event.Type{event.TickType}, Now: func() time.Time { return noon }},
			func(ctx context.Context, _ event.Envelope) error { host.AddLogFields(ctx, "pods", 7); return nil }))
		return w.ProcessMessage(t.Context(), queue.Message{ID: "m", Body: body, Sent: sent}).LogFields
	}
	t.Run("handled", func(t *testing.T) {
		n := note(t, tick(t, noon, nil), noon)
		if n.Type != "tick.v1" || n.ID == "" || n.Cluster != "prod" || n.Correlation != n.ID || n.Skew != 0 {
			t.Errorf("%+v", n)
		}
		if len(n.Pairs) != 2 || n.Pairs[0] != "pods" || n.Pairs[1] != 7 {
			t.Errorf("log fields %v", n.Pairs)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		if n := note(t, tick(t, noon, func(e *event.Envelope) { e.Cluster = "test" }), noon); n.Cluster != "test" || n.Pairs != nil {
			t.Errorf("%+v", n)
		}
	})
	t.Run("skew within the limit", func(t *testing.T) {
		if n := note(t, tick(t, noon, nil), noon.Add(-host.MaxSkew)); n.Skew != 0 {
			t.Errorf("skew %s", n.Skew)
		}
	})
	t.Run("skewed", func(t *testing.T) {
		if n := note(t, tick(t, noon, nil), noon.Add(-host.MaxSkew-time.Second)); n.Skew != host.MaxSkew+time.Second {
			t.Errorf("skew %s", n.Skew)
		}
	})
	t.Run("without log fields in the context", func(t *testing.T) {
		host.AddLogFields(t.Context(), "key", "value")
		host.DescribeMessage(t.Context(), "key", "value", "")
	})
}

// A body that cannot be decoded is poison, and no handler gets it.
func TestHandleBody(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*event.Envelope)
		kind   fault.Kind
	}{
		"a tick":       {func(*event.Envelope) {}, ""},
		"another body": {func(e *event.Envelope) { e.Data = []byte("[]") }, fault.Poison},
	} {
		e, err := event.Decode(tick(t, noon, func(*event.Envelope) {}))
		if err != nil {
			t.Fatal(err)
		}
		c.change(&e)
		handled := false
		err = host.HandleBody(t.Context(), func(context.Context, event.Envelope, event.Tick) error { handled = true; return nil }, e)
		if fault.KindOf(err) != c.kind || handled != (err == nil) {
			t.Errorf("%s: handled %t, %v, want kind %q", name, handled, err, c.kind)
		}
	}
}
