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

// collectSpans hears of every span.
func (b *fixture) collectSpans() *[]host.Span {
	var heard []host.Span
	b.Span = func(s host.Span) { heard = append(heard, s) }
	return &heard
}

// requireSpans demands that each fact that was said hangs below a span that began with AWS.
func (b *fixture) requireSpans(t *testing.T, heard []host.Span, from time.Time) {
	t.Helper()
	if len(heard) != len(b.published) {
		t.Fatalf("%d spans for %d facts", len(heard), len(b.published))
	}
	story := b.published[0].Correlation
	for i, said := range b.published {
		s := heard[i]
		if !s.Begins || s.Of.Root() != said.Traceparent || said.Correlation != story || !s.From.Equal(from) || !s.To.Equal(b.now) {
			t.Errorf("%s %s with %q is below %+v", said.Type, said.Correlation, said.Traceparent, s)
		}
	}
}

// What AWS says of an instance and what becomes of it are one story, which begins when
// AWS says it.
func TestNoticesBeginTheirTrace(t *testing.T) {
	b := newFixture()
	heard := b.collectSpans()
	for _, say := range []func() error{
		func() error { return b.deliverEvent(t, spotType, ownedID, "") },
		func() error {
			b.instances[0].State = cloud.Terminated
			return b.deliverEvent(t, stateType, ownedID, `,"state":"terminated"`)
		},
	} {
		b.now = b.now.Add(2 * time.Second)
		b.published, *heard = nil, nil
		if err := say(); err != nil {
			t.Fatal(err)
		}
		b.requireSpans(t, *heard, start)
	}
	end := b.published[len(b.published)-1]
	if warned, err := (event.Maker{Service: "interruption", Cluster: web}).New(start, event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: ownedID, Noticed: start}, nil); err != nil ||
		end.Type != event.InstanceGoneType || end.Correlation != warned.Correlation {
		t.Errorf("%s is of the story %s, and the warning of %s (%v)", end.Type, end.Correlation, warned.Correlation, err)
	}
}

// A poll's notices are of their instances' stories as well. A tick has no trace that they
// could lead back to; it is their cause.
func TestPolledNoticesJoinTheirTrace(t *testing.T) {
	b := newFixture()
	heard := b.collectSpans()
	impaired := start.Add(-2 * time.Minute)
	b.statuses = []cloud.Status{{InstanceID: ownedID, Impaired: impaired}}
	cause, err := b.deliverTick(t, web, event.Tick{Want: event.WantStatus, Due: start})
	if err != nil {
		t.Fatal(err)
	}
	b.requireSpans(t, *heard, decodeBody[event.NodeNoticed](t, b.published[0]).Noticed)
	if said := b.published[0]; said.Causation != cause.ID || said.Correlation == cause.Correlation || len((*heard)[0].Links) > 0 {
		t.Errorf("%+v with %v", said, (*heard)[0].Links)
	}
}

var errUnavailable = fault.F("calling", fault.Retry, "no route")

// unavailableBus is a bus that cannot be reached.
type unavailableBus struct{}

func (unavailableBus) Send(context.Context, ...queue.Outgoing) error { return errUnavailable }

// The line of an event of AWS names the story of its instance, whether somebody hears of
// spans or not, and also where the story could not be said.
func TestLinesHaveCorrelation(t *testing.T) {
	b := newFixture()
	batch := []host.Delivery{
		{Message: queue.Message{ID: "1", Body: warningBody(ownedID, start)}, Err: host.ErrAlone},
		{Message: queue.Message{ID: "2", Body: warningBody(foreignID, start)}, Err: host.ErrAlone},
	}
	b.Batch(t.Context(), batch)
	if got, want := batch[0].Note.Correlation, b.published[0].Correlation; got != want || batch[1].Note.Correlation != "" {
		t.Errorf("the lines name %q and %q, want %q and none", got, batch[1].Note.Correlation, want)
	}
	again := []host.Delivery{{Message: batch[0].Message, Err: host.ErrAlone}}
	b.Bus = unavailableBus{}
	b.Batch(t.Context(), again)
	if !errors.Is(again[0].Err, errUnavailable) || again[0].Note.Correlation != b.published[0].Correlation {
		t.Errorf("where the bus is away the line names %q: %v", again[0].Note.Correlation, again[0].Err)
	}
}

// A batch tells the stories of its messages to who tells of the batch; a message about
// nobody of ours has none.
func TestBatchReturnsTraces(t *testing.T) {
	b := newFixture()
	heard := b.collectSpans()
	batch := []host.Delivery{
		{Message: queue.Message{ID: "1", Body: warningBody(ownedID, start)}, Err: host.ErrAlone},
		{Message: queue.Message{ID: "2", Body: warningBody(foreignID, start)}, Err: host.ErrAlone},
	}
	b.Batch(t.Context(), batch)
	if diff := cmp.Diff([]string{(*heard)[0].Of.Root()}, batch[0].Stories); diff != "" || len(batch[1].Stories) > 0 || batch[0].Note.Correlation != b.published[0].Correlation {
		t.Errorf("(-want +got)\n%s%v", diff, batch[1].Stories)
	}
}
