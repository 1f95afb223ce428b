package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const traceparent = "traceparent"

// Trace wraps a handler of envelopes into a span. The span's parent is the span
// of the hop before, which the envelope carries, and the envelope that the
// handler sees carries the new one: whatever it causes inherits it. Where no hop
// was before, the story begins a trace of its own.
func (t *Telemetry) Trace(handle func(ctx context.Context, e event.Envelope) error) func(ctx context.Context, e event.Envelope) error {
	tracer := t.traces.Tracer("joist")
	w3c := propagation.TraceContext{}
	return func(ctx context.Context, e event.Envelope) error {
		ctx = w3c.Extract(ctx, propagation.MapCarrier{traceparent: e.Traceparent})
		ctx, span := tracer.Start(context.WithValue(ctx, storyKey{}, e.Correlation), "process "+string(e.Type),
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
				attribute.String("messaging.operation.type", "process"), attribute.String("messaging.message.id", e.ID),
				attribute.String("joist.cluster", e.Cluster), attribute.String("joist.subject", e.Subject),
				attribute.String("joist.correlation", e.Correlation),
			))
		defer span.End()
		carrier := propagation.MapCarrier{}
		w3c.Inject(ctx, carrier)
		e.Traceparent = carrier[traceparent]
		err := handle(ctx, e)
		if err != nil {
			span.SetAttributes(attribute.String("error.type", string(fault.KindOf(err))))
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	}
}

// Span adds what happened to the story of an envelope, where there is no message about it
// to handle.
func (t *Telemetry) Span(name string, of event.Envelope, from, to time.Time) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: of.Traceparent})
	_, span := t.traces.Tracer("joist").Start(context.WithValue(ctx, storyKey{}, of.Correlation), name, trace.WithTimestamp(from), trace.WithAttributes(
		attribute.String("joist.cluster", of.Cluster), attribute.String("joist.correlation", of.Correlation),
	))
	span.End(trace.WithTimestamp(to))
}

type storyKey struct{}

// stories makes the ids of spans. A trace that begins takes the correlation id
// of its story, which has the 16 bytes of a trace id because both are that.
type stories struct{}

// NewIDs makes the ids of a span that begins a trace.
func (s stories) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	correlation, _ := ctx.Value(storyKey{}).(string)
	return traceOf(correlation), s.NewSpanID(ctx, trace.TraceID{})
}

// NewSpanID draws one: two tries of one message are two spans.
func (stories) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails
	}
	return id
}

// traceOf is the correlation id itself, or a hash of one that is not ours (the
// scheduler's); without one it is drawn.
func traceOf(correlation string) trace.TraceID {
	if id, err := trace.TraceIDFromHex(correlation); err == nil && id.IsValid() {
		return id
	}
	var id trace.TraceID
	if correlation == "" {
		_, _ = rand.Read(id[:]) // never fails
		return id
	}
	sum := sha256.Sum256([]byte(correlation))
	copy(id[:], sum[:])
	return id
}
