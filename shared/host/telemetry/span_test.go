package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

// listened returns a Telemetry and a recorder of its spans.
func listened(t *testing.T) (*Telemetry, *tracetest.SpanRecorder) {
	t.Helper()
	told, _ := quiet(t, slog.LevelInfo)
	spans := tracetest.NewSpanRecorder()
	told.traces.RegisterSpanProcessor(spans)
	return told, spans
}

func noticed(t *testing.T, kind event.NoticeKind) event.Envelope {
	t.Helper()
	return event.Maker{Service: "interruption", Cluster: event.Cluster{Name: "prod"}}.
		NewHead(noon, event.NodeNoticed{Kind: kind, InstanceID: "i-1", Noticed: noon.Add(-time.Second)})
}

// An AWS notice has no span, so one is recorded that begins at the time of the notice. The handling of its event is a
// child span, and a repeated notice gives the same span.
func TestAStoryBeginsBeforeItsFirstMessage(t *testing.T) {
	told, spans := listened(t)
	notice := noticed(t, event.SpotInterruption)
	for range 2 {
		told.RecordSpan(host.Span{Name: "notice", Envelope: notice, IsRoot: true, Start: noon.Add(-time.Second), End: noon, Fields: []any{"pods", 3}})
	}
	if err := told.TraceHandler(func(context.Context, event.Envelope) error { return nil })(t.Context(), notice); err != nil {
		t.Fatal(err)
	}
	told.RecordSpan(host.Span{Name: "clocks", Envelope: notice, Start: noon.Add(time.Second), End: noon})
	ended := spans.Ended()
	first, again, handled, last := ended[0], ended[1], ended[2], ended[3]
	if id := first.SpanContext().TraceID().String(); id != notice.Correlation || first.Parent().IsValid() || !first.StartTime().Equal(noon.Add(-time.Second)) {
		t.Errorf("the story begins at %s in %s below %v", first.StartTime(), id, first.Parent())
	}
	if again.SpanContext().SpanID() != first.SpanContext().SpanID() || again.SpanContext().TraceID() != first.SpanContext().TraceID() {
		t.Error("said twice it is two spans")
	}
	for _, below := range []struct{ name, parent, trace string }{
		{handled.Name(), handled.Parent().SpanID().String(), handled.SpanContext().TraceID().String()},
		{last.Name(), last.Parent().SpanID().String(), last.SpanContext().TraceID().String()},
	} {
		if below.parent != first.SpanContext().SpanID().String() || below.trace != notice.Correlation {
			t.Errorf("%s is below %s in %s", below.name, below.parent, below.trace)
		}
	}
	if last.StartTime().After(last.EndTime()) {
		t.Error("a span ends before it begins")
	}
	if end := noticed(t, event.StateChange); end.Correlation != notice.Correlation || end.RootTraceparent() == notice.RootTraceparent() {
		t.Errorf("two notices of an instance are %s and %s", notice.RootTraceparent(), end.RootTraceparent())
	}
}

// A batch is a span of its own, linked to the traces of its messages.
func TestABatchIsLinkedToItsStories(t *testing.T) {
	told, spans := listened(t)
	stories := []string{noticed(t, event.SpotInterruption).RootTraceparent(), noticed(t, event.StateChange).RootTraceparent()}
	told.TraceBatch(func(_ context.Context, batch []host.Delivery) {
		batch[0].Traceparents, batch[1].Traceparents = stories, []string{"?"}
	})(t.Context(), make([]host.Delivery, 3))
	batch := spans.Ended()[0]
	var linked []string
	for _, l := range batch.Links() {
		linked = append(linked, "00-"+l.SpanContext.TraceID().String()+"-"+l.SpanContext.SpanID().String()+"-01")
	}
	if len(linked) != 2 || linked[0] != stories[0] || linked[1] != stories[1] || batch.Parent().IsValid() {
		t.Errorf("linked to %v, want %v", linked, stories)
	}
}

// The span of a larger batch has 128 links, which is OpenTelemetry's limit.
func TestLinksOfLargeBatch(t *testing.T) {
	told, spans := listened(t)
	told.TraceBatch(func(_ context.Context, batch []host.Delivery) {
		for i := range batch {
			body := event.NodeNoticed{Kind: event.StateChange, InstanceID: fmt.Sprintf("i-%d", i), Noticed: noon}
			head := event.Maker{Service: "interruption", Cluster: event.Cluster{Name: "prod"}}.NewHead(noon, body)
			batch[i].Traceparents = []string{head.RootTraceparent()}
		}
	})(t.Context(), make([]host.Delivery, 200))
	if links := spans.Ended()[0].Links(); len(links) != 128 {
		t.Errorf("the span has %d links, want 128", len(links))
	}
}
