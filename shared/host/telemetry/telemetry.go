package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	tracing "go.opentelemetry.io/otel/sdk/trace"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// Options configure the telemetry and its destinations.
type Options struct {
	Service, Version string
	// Cluster is the cluster that is served, or "" if there are several. Then ForCluster makes a Telemetry for each.
	Cluster string
	// Out receives the log lines.
	Out   io.Writer
	Level slog.Level
	// Tracing is the destination of spans. Spans are created without one, too, because messages carry their ids.
	Tracing settings.Tracing
	// CloudWatch is where metrics are also written for CloudWatch, at each Flush and each minute of Serve: ToLog for
	// Out, which functions use because they cannot be scraped, or the URL of an agent, tcp://host:port. Empty
	// disables it.
	CloudWatch string
}

// Telemetry writes the logs, metrics and spans of one process.
type Telemetry struct {
	Options
	Log *slog.Logger
	// OnMessage is called with each line, for metrics of one service; it may be nil. Set it before the first line.
	OnMessage func(l host.LogLine)
	plain     fastLogger
	meters    meters
	// traces is nil if the OpenTelemetry SDK is turned off.
	traces *tracing.TracerProvider
	// nextFlush is the time, in Unix nanoseconds, before which Flush sends no spans.
	nextFlush *atomic.Int64
	// clusters are the results of ForCluster. Their metrics are served together with these.
	clusters []*Telemetry
}

// New returns a Telemetry.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	meters, err := newMeters(nil)
	if err != nil {
		return nil, err
	}
	if o.Cluster != "" {
		meters.initSeries(o.Service)
	}
	if o.CloudWatch != "" {
		meters.cloudWatch, meters.cluster = o.cloudWatch(), o.Cluster
	}
	// slog, fastLogger and the console exporter all write lines, which must not be interleaved.
	o.Out = &lockedWriter{out: o.Out}
	traces, err := newTracerProvider(ctx, o)
	if err != nil {
		return nil, err
	}
	handler := slog.NewJSONHandler(o.Out, &slog.HandlerOptions{Level: o.Level}).
		WithAttrs([]slog.Attr{slog.String("service", o.Service)})
	return &Telemetry{
		Options: o, Log: slog.New(handler), plain: newFastLogger(o), meters: meters, traces: traces, nextFlush: new(atomic.Int64),
	}, nil
}

// ForCluster returns a Telemetry of the same process for one of its clusters: its lines and metrics name that
// cluster. Call it before Serve.
func (t *Telemetry) ForCluster(cluster string) (*Telemetry, error) {
	meters, err := newMeters(prometheus.Labels{metric.ByCluster: cluster})
	if err != nil {
		return nil, err
	}
	meters.initSeries(t.Service)
	meters.cloudWatch, meters.cluster = t.meters.cloudWatch, cluster
	one := *t
	one.Cluster, one.meters, one.OnMessage, one.clusters = cluster, meters, nil, nil
	t.clusters = append(t.clusters, &one)
	return &one, nil
}

const (
	// flushTimeout is how long Flush may take.
	flushTimeout = time.Second
	// flushMargin is how long before the deadline of its context Flush ends. Lambda ends a function that has not answered
	// by its timeout, and SQS then delivers all messages of the invocation again, also the handled ones.
	flushMargin = 500 * time.Millisecond
	// flushPause is how long Flush sends no spans after an attempt that failed, so that a collector that is unreachable
	// does not delay every invocation.
	flushPause = time.Minute
)

// Flush sends buffered metrics and spans, for a process that may be frozen next. It takes at most flushTimeout and ends
// flushMargin before the deadline of ctx. Spans that it fails to send may be lost, and it sends the next ones
// after flushPause.
func (t *Telemetry) Flush(ctx context.Context) {
	ctx, cancel := limitFlush(ctx)
	defer cancel()
	// The error is ignored: there is no other place to report it.
	_ = t.writeCloudWatch(ctx)
	if t.traces == nil || ctx.Err() != nil || time.Now().UnixNano() < t.nextFlush.Load() {
		return
	}
	if err := t.traces.ForceFlush(ctx); err != nil {
		t.nextFlush.Store(time.Now().Add(flushPause).UnixNano())
		otel.Handle(err)
	}
}

// limitFlush returns ctx with the deadline of Flush.
func limitFlush(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := flushTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)-flushMargin)
	}
	return context.WithTimeout(ctx, limit)
}

// Close sends buffered metrics and spans, and stops the exporters.
func (t *Telemetry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := t.writeCloudWatch(ctx)
	if t.traces != nil {
		err = errors.Join(err, t.traces.Shutdown(ctx))
	}
	return err
}

// ErrorLog returns a rate-limited log of failures that concern no message. Failures that a
// retry may resolve have level WARN, as they have for messages; if they last, an alarm on
// joist_reconciles_failed_total or on missing metrics reports them.
func (t *Telemetry) ErrorLog() *host.RateLimitedLog {
	return &host.RateLimitedLog{Write: func(err error, times int) {
		t.Log.LogAttrs(context.Background(), failureLevel(err), "background error", slog.String("cluster", t.Cluster), slog.String("error", err.Error()),
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
func (t *Telemetry) RecordMetric(m metric.Metric, value float64, labels ...string) {
	t.meters.recordValue(m, value, labels...)
}

// RecordReconcile counts one reconcile that did work (looked) or failed. It ignores the idle reconciles of standby
// replicas, which would outnumber the leader's and hide its failures.
func (t *Telemetry) RecordReconcile(took time.Duration, looked bool, err error) {
	if !looked && err == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = string(fault.KindOf(err))
	}
	t.meters.recordValue(metric.ReconcileTime, took.Seconds(), t.Service, result)
	if err != nil {
		t.meters.recordValue(metric.ReconcileFailures, 1, t.Service)
	}
}
