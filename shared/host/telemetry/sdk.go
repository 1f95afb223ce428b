package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	tracing "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// newTracerProvider returns the provider of spans, or nil if the SDK is turned off. The SDK itself reads
// OTEL_TRACES_SAMPLER, OTEL_BSP_…, the limits of spans, and the exporter's OTEL_EXPORTER_OTLP_… variables.
func newTracerProvider(ctx context.Context, o Options) (*tracing.TracerProvider, error) {
	if o.Tracing.IsDisabled {
		return nil, nil //nolint:nilnil // A provider that does nothing needs no second type.
	}
	about, err := newResource(o)
	if err != nil {
		return nil, err
	}
	options := []tracing.TracerProviderOption{tracing.WithResource(about), tracing.WithIDGenerator(idGenerator{})}
	var exporter tracing.SpanExporter
	switch o.Tracing.Target() {
	case settings.OTLPExporter:
		exporter, err = otlptracehttp.New(ctx)
	case settings.ConsoleExporter:
		exporter, err = stdouttrace.New(stdouttrace.WithWriter(o.Out))
	default:
		return tracing.NewTracerProvider(options...), nil
	}
	if err != nil {
		return nil, fault.E("preparing the export of traces", fault.Invalid, err).
			WithHint("set %s to the URL of a collector, such as http://collector:4318, or to nothing", settings.Traces)
	}
	return tracing.NewTracerProvider(append(options, tracing.WithBatcher(exporter))...), nil
}

// newResource describes the process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
func newResource(o Options) (*resource.Resource, error) {
	own := []attribute.KeyValue{semconv.ServiceName("joist-" + o.Service), semconv.ServiceVersion(o.Version)}
	if o.Cluster != "" {
		own = append(own, semconv.K8SClusterName(o.Cluster))
	}
	about, err := resource.Merge(resource.NewSchemaless(own...), resource.Environment())
	if err != nil {
		return nil, fault.E("describing the process in traces", fault.Invalid, err).WithHint("correct %s", settings.ResourceAttributes)
	}
	return about, nil
}

func (t *Telemetry) tracer() trace.Tracer {
	if t.traces == nil {
		return noop.NewTracerProvider().Tracer("joist")
	}
	return t.traces.Tracer("joist")
}

// SamplesTrace reports whether the sampler samples a trace that this process begins. Its id is the correlation id of
// the first message, so processes with the same sampler decide alike.
func (t *Telemetry) SamplesTrace(correlation string) bool {
	// The sampler of the environment belongs to the provider, so this asks for a span, which is never ended.
	_, span := t.tracer().Start(context.WithValue(context.Background(), correlationKey{}, correlation), "sampling")
	return span.SpanContext().IsSampled()
}

// DiscardSDKErrors drops the errors of OpenTelemetry's SDK until ReportSDKErrors. While it starts they repeat the
// warnings of settings, in another format.
func DiscardSDKErrors() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) }

// ReportSDKErrors logs the errors of OpenTelemetry's SDK, such as a collector that is not reachable. The SDK has one
// handler in a process.
func (t *Telemetry) ReportSDKErrors() {
	reported := t.ErrorLog()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		reported.Report(time.Now(), fault.E("exporting spans", fault.Retry, err).
			WithHint("check that the collector of %s is reachable and accepts OTLP over HTTP", settings.Traces))
	}))
}
