package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const traceparentKey = "traceparent"

// TraceHandler wraps a handler of envelopes into a span. The span's parent is the envelope's traceparent. The handler
// receives the envelope with the new span's traceparent, which the messages it causes inherit. Without a parent the
// span begins a new trace.
func (t *Telemetry) TraceHandler(handle func(ctx context.Context, e event.Envelope) error) func(ctx context.Context, e event.Envelope) error {
	tracer := t.tracer()
	w3c := propagation.TraceContext{}
	return func(ctx context.Context, e event.Envelope) error {
		ctx = w3c.Extract(ctx, propagation.MapCarrier{traceparentKey: e.Traceparent})
		ctx, span := tracer.Start(context.WithValue(ctx, correlationKey{}, e.Correlation), "process "+string(e.Type),
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
				attribute.String("messaging.operation.type", "process"), attribute.String("messaging.message.id", e.ID),
				attribute.String("joist.cluster", e.Cluster), attribute.String("joist.subject", e.Subject),
				attribute.String("joist.correlation", e.Correlation),
			))
		defer span.End()
		carrier := propagation.MapCarrier{}
		w3c.Inject(ctx, carrier)
		if t.traces != nil {
			e.Traceparent = carrier[traceparentKey]
		}
		err := handle(ctx, e)
		if err != nil {
			span.SetAttributes(attribute.String("error.type", string(fault.KindOf(err))))
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	}
}

// correlationKey is the context key of the correlation id of a span's trace, and rootSpanKey of the predetermined id
// of a root span.
type (
	correlationKey struct{}
	rootSpanKey    struct{}
)

// idGenerator makes the ids of spans. The id of a new trace is the correlation id of its message: both have 16 bytes.
type idGenerator struct{}

// NewIDs returns the ids of a span that begins a trace.
func (s idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	correlation, _ := ctx.Value(correlationKey{}).(string)
	root, known := ctx.Value(rootSpanKey{}).(trace.SpanID)
	if !known || !root.IsValid() {
		root = s.NewSpanID(ctx, trace.TraceID{})
	}
	return traceIDFrom(correlation), root
}

// NewSpanID returns a random id: two attempts at one message are two spans.
func (idGenerator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails
	}
	return id
}

// traceIDFrom returns the correlation id itself, or its hash if it has another format (EventBridge Scheduler's), or a
// random id if it is empty.
func traceIDFrom(correlation string) trace.TraceID {
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
