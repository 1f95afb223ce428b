package interruption

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// collectSpans collects the spans of the service.
func (b *fixture) collectSpans() *[]host.Span {
	var spans []host.Span
	b.Span = func(s host.Span) { spans = append(spans, s) }
	return &spans
}

// requireSpans requires that each published fact is a child of a span that begins at the
// time of the event.
func (b *fixture) requireSpans(t *testing.T, spans []host.Span, from time.Time) {
	t.Helper()
	if len(spans) != len(b.published) {
		t.Fatalf("%d spans for %d facts", len(spans), len(b.published))
	}
	correlation := b.published[0].Correlation
	for i, fact := range b.published {
		s := spans[i]
		if !s.IsRoot || s.Envelope.RootTraceparent() != fact.Traceparent || fact.Correlation != correlation || !s.Start.Equal(from) || !s.End.Equal(b.now) {
			t.Errorf("%s %s with the parent %q has the span %+v", fact.Type, fact.Correlation, fact.Traceparent, s)
		}
	}
}

// All facts about an instance share a correlation ID, and their trace begins at the time of
// the AWS event.
func TestNoticesBeginTheirTrace(t *testing.T) {
	b := newFixture()
	spans := b.collectSpans()
	for _, deliver := range []func() error{
		func() error { return b.deliverEvent(t, spotType, ownedID, "") },
		func() error {
			b.instances[0].State = cloud.Terminated
			return b.deliverEvent(t, stateType, ownedID, `,"state":"terminated"`)
		},
	} {
		b.now = b.now.Add(2 * time.Second)
		b.published, *spans = nil, nil
		if err := deliver(); err != nil {
			t.Fatal(err)
		}
		b.requireSpans(t, *spans, start)
	}
	end := b.published[len(b.published)-1]
	if warned, err := (event.Maker{Service: "interruption", Cluster: web}).New(start, event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: ownedID, Noticed: start}, nil); err != nil ||
		end.Type != event.InstanceGoneType || end.Correlation != warned.Correlation {
		t.Errorf("%s has the correlation ID %s, the warning has %s (%v)", end.Type, end.Correlation, warned.Correlation, err)
	}
}

// Facts of a poll have the correlation IDs of their instances. The tick is their cause, but
// not their trace.
func TestPolledNoticesJoinTheirTrace(t *testing.T) {
	b := newFixture()
	spans := b.collectSpans()
	impaired := start.Add(-2 * time.Minute)
	b.statuses = []cloud.Status{{InstanceID: ownedID, Impaired: impaired}}
	cause, err := b.deliverTick(t, web, event.Tick{Want: event.WantStatus, Due: start})
	if err != nil {
		t.Fatal(err)
	}
	b.requireSpans(t, *spans, decodeBody[event.NodeNoticed](t, b.published[0]).Noticed)
	if fact := b.published[0]; fact.Causation != cause.ID || fact.Correlation == cause.Correlation || len((*spans)[0].Links) > 0 {
		t.Errorf("unexpected fact %+v with links %v", fact, (*spans)[0].Links)
	}
}

var errUnavailable = fault.F("calling", fault.Retry, "no route")

// unavailableBus fails all calls.
type unavailableBus struct{}

func (unavailableBus) Send(context.Context, ...queue.Outgoing) error { return errUnavailable }

// The log line of an AWS event has the correlation ID of its instance, even without traces and if
// the fact could not be published.
func TestLinesHaveCorrelation(t *testing.T) {
	b := newFixture()
	batch := []host.Delivery{
		{Message: queue.Message{ID: "1", Body: warningBody(ownedID, start)}, Err: host.ErrNotBatched},
		{Message: queue.Message{ID: "2", Body: warningBody(foreignID, start)}, Err: host.ErrNotBatched},
	}
	b.Batch(t.Context(), batch)
	if got, want := batch[0].LogFields.Correlation, b.published[0].Correlation; got != want || batch[1].LogFields.Correlation != "" {
		t.Errorf("the lines have the correlation IDs %q and %q, want %q and none", got, batch[1].LogFields.Correlation, want)
	}
	again := []host.Delivery{{Message: batch[0].Message, Err: host.ErrNotBatched}}
	b.Bus = unavailableBus{}
	b.Batch(t.Context(), again)
	if !errors.Is(again[0].Err, errUnavailable) || again[0].LogFields.Correlation != b.published[0].Correlation {
		t.Errorf("with an unavailable bus the line has the correlation ID %q: %v", again[0].LogFields.Correlation, again[0].Err)
	}
}

// Batch returns the traces of its messages. A message about foreign instances has none.
func TestBatchReturnsTraces(t *testing.T) {
	b := newFixture()
	spans := b.collectSpans()
	batch := []host.Delivery{
		{Message: queue.Message{ID: "1", Body: warningBody(ownedID, start)}, Err: host.ErrNotBatched},
		{Message: queue.Message{ID: "2", Body: warningBody(foreignID, start)}, Err: host.ErrNotBatched},
	}
	b.Batch(t.Context(), batch)
	if diff := cmp.Diff([]string{(*spans)[0].Envelope.RootTraceparent()}, batch[0].Traceparents); diff != "" || len(batch[1].Traceparents) > 0 || batch[0].LogFields.Correlation != b.published[0].Correlation {
		t.Errorf("(-want +got)\n%s%v", diff, batch[1].Traceparents)
	}
}
