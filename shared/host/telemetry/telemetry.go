package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	tracing "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// Options say what is told, and where.
type Options struct {
	Service, Version string
	// Cluster is the one that is served; empty where they are several, each of which has
	// a voice of its own by For.
	Cluster string
	// Out gets the log lines.
	Out   io.Writer
	Level slog.Level
	// Export sends spans over OTLP, to where OTEL_EXPORTER_OTLP_ENDPOINT and its
	// like say. Spans are made in any case, because they carry the story on.
	Export bool
	// CloudWatch is where metrics are written for CloudWatch as well, at each Flush and
	// each minute of Serve: ToLog for Out, which a function has, whom nobody scrapes; or
	// the URL of an agent, tcp://host:port. Empty is nowhere.
	CloudWatch string
}

// Telemetry is one process's voice.
type Telemetry struct {
	Options
	Log *slog.Logger
	// OnMessage hears of each line beside the log, for what only one service counts; nil is
	// nobody. It is set before the first line.
	OnMessage func(l host.LogLine)
	plain     fastLogger
	meters    meters
	traces    *tracing.TracerProvider
	// clusters are those that For made, whose metrics are served with these.
	clusters []*Telemetry
}

// New makes it.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	meters, err := newMeters(nil)
	if err != nil {
		return nil, err
	}
	if o.Cluster != "" {
		meters.initCounters(o.Service)
	}
	if o.CloudWatch != "" {
		meters.cloudWatch, meters.cluster = o.cloudWatch(), o.Cluster
	}
	is := []attribute.KeyValue{semconv.ServiceName("joist-" + o.Service), semconv.ServiceVersion(o.Version)}
	if o.Cluster != "" {
		is = append(is, semconv.K8SClusterName(o.Cluster))
	}
	about := resource.NewSchemaless(is...)
	traces := []tracing.TracerProviderOption{
		tracing.WithResource(about), tracing.WithIDGenerator(idGenerator{}), tracing.WithSampler(tracing.ParentBased(tracing.AlwaysSample())),
	}
	if o.Export {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fault.E("preparing the export of traces", fault.Invalid, err).
				WithHint("set OTEL_EXPORTER_OTLP_ENDPOINT to the URL of a collector, such as http://collector:4318, or to nothing")
		}
		traces = append(traces, tracing.WithBatcher(exporter))
	}
	// Two write lines, and none may cut another's in two.
	o.Out = &lockedWriter{out: o.Out}
	handler := slog.NewJSONHandler(o.Out, &slog.HandlerOptions{Level: o.Level}).
		WithAttrs([]slog.Attr{slog.String("service", o.Service)})
	return &Telemetry{
		Options: o, Log: slog.New(handler), plain: newFastLogger(o), meters: meters, traces: tracing.NewTracerProvider(traces...),
	}, nil
}

// ForCluster is the same process's voice about one of the clusters that it serves: its lines and
// metrics name that cluster. It is called before anything is served.
func (t *Telemetry) ForCluster(cluster string) (*Telemetry, error) {
	meters, err := newMeters(prometheus.Labels{ByCluster: cluster})
	if err != nil {
		return nil, err
	}
	meters.initCounters(t.Service)
	meters.cloudWatch, meters.cluster = t.meters.cloudWatch, cluster
	one := *t
	one.Cluster, one.meters, one.OnMessage, one.clusters = cluster, meters, nil, nil
	t.clusters = append(t.clusters, &one)
	return &one, nil
}

// Flush sends what waits to be sent, for a process that may be frozen now.
func (t *Telemetry) Flush(ctx context.Context) {
	// Nobody could do anything about a failure.
	_ = t.writeCloudWatch(ctx)
	_ = t.traces.ForceFlush(ctx)
}

// Close sends what is left and ends it.
func (t *Telemetry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(t.writeCloudWatch(ctx), t.traces.Shutdown(ctx))
}

// ErrorLog returns a rate-limited log of failures that concern no message. Failures that a
// retry may resolve have level WARN, as they have for messages; if they last, an alarm on
// joist_looks_failed_total or on missing metrics reports them.
func (t *Telemetry) ErrorLog() *host.RateLimitedLog {
	return &host.RateLimitedLog{Write: func(err error, times int) {
		t.Log.LogAttrs(context.Background(), failureLevel(err), "trouble", slog.String("cluster", t.Cluster), slog.String("error", err.Error()),
			slog.String("kind", string(fault.KindOf(err))), slog.Int("times", times))
	}}
}

// failureLevel is WARN for failures that a retry may resolve and ERROR for others, such as
// missing permissions.
func failureLevel(err error) slog.Level {
	if fault.Is(err, fault.Retry, fault.Throttled, fault.Rejected, fault.Unknown, fault.Conflict, fault.Missing) {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// RecordMetric adds to a counter, sets a gauge, or notes a value in a histogram, with the
// values of its labels in the order of the catalogue. A gauge that is set to NaN is
// forgotten.
func (t *Telemetry) RecordMetric(metric Metric, value float64, labels ...string) {
	t.meters.recordValue(metric, value, labels...)
}

// RecordReconcile counts one step of a loop that looked at the cluster, or failed. The steps of
// who waits to lead would outnumber the looks of who leads, and hide that those fail.
func (t *Telemetry) RecordReconcile(took time.Duration, looked bool, err error) {
	if !looked && err == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = string(fault.KindOf(err))
	}
	t.meters.recordValue(ReconcileTime, took.Seconds(), t.Service, result)
	if err != nil {
		t.meters.recordValue(ReconcileFailures, 1, t.Service)
	}
}
