package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/joist-autoscaler/joist/shared/host"
)

// RecordSpan records a span that is not the handling of a message.
func (t *Telemetry) RecordSpan(s host.Span) {
	ctx := context.WithValue(context.Background(), correlationKey{}, s.Envelope.Correlation)
	if s.IsRoot {
		ctx = context.WithValue(ctx, rootSpanKey{}, parseTraceparent(s.Envelope.RootTraceparent()).SpanID())
	} else {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parseTraceparent(s.Envelope.Traceparent))
	}
	if s.Start.After(s.End) {
		s.Start = s.End // The times are from the clocks of two machines.
	}
	attributes := []attribute.KeyValue{attribute.String("joist.cluster", s.Envelope.Cluster), attribute.String("joist.correlation", s.Envelope.Correlation)}
	if s.Envelope.Subject != "" {
		attributes = append(attributes, attribute.String("joist.subject", s.Envelope.Subject))
	}
	for i := 0; i+1 < len(s.Fields); i += 2 {
		attributes = append(attributes, attribute.String(fmt.Sprint("joist.", s.Fields[i]), fmt.Sprint(s.Fields[i+1])))
	}
	kind := trace.SpanKindInternal
	if s.IsRoot {
		kind = trace.SpanKindProducer
	}
	_, span := t.tracer().Start(ctx, s.Name, trace.WithTimestamp(s.Start), trace.WithSpanKind(kind),
		trace.WithAttributes(attributes...), trace.WithLinks(parseLinks(s.Links)...))
	span.End(trace.WithTimestamp(s.End))
}

// TraceBatch wraps a batch handler into a span of its own, which is linked to the trace of each message because it
// belongs to all of them.
func (t *Telemetry) TraceBatch(batch host.BatchHandler) host.BatchHandler {
	return func(ctx context.Context, deliveries []host.Delivery) {
		ctx, span := t.tracer().Start(ctx, "process batch", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("messaging.operation.type", "process"), attribute.Int("messaging.batch.message_count", len(deliveries)),
		))
		defer span.End()
		batch(ctx, deliveries)
		if !span.IsRecording() {
			return
		}
		for i := range deliveries {
			for _, link := range parseLinks(deliveries[i].Traceparents) {
				span.AddLink(link)
			}
		}
	}
}

// parseTraceparent parses a W3C trace context. The result is invalid if it cannot be parsed.
func parseTraceparent(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparentKey: traceparent})
	return trace.SpanContextFromContext(ctx)
}

func parseLinks(of []string) []trace.Link {
	var all []trace.Link
	for _, traceparent := range of {
		if to := parseTraceparent(traceparent); to.IsValid() {
			all = append(all, trace.Link{SpanContext: to})
		}
	}
	return all
}
