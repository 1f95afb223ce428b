package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tracing "go.opentelemetry.io/otel/sdk/trace"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// slowCollector is an exporter whose collector answers after a delay. It counts the spans that it accepted.
type slowCollector struct {
	delay    time.Duration
	accepted int
}

func (s *slowCollector) ExportSpans(ctx context.Context, spans []tracing.ReadOnlySpan) error {
	select {
	case <-time.After(s.delay):
		s.accepted += len(spans)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (*slowCollector) Shutdown(context.Context) error { return nil }

// newProcessor returns a processor that sends spans only when it is flushed.
func (s *slowCollector) newProcessor() tracing.SpanProcessor {
	return tracing.NewBatchSpanProcessor(s, tracing.WithBatchTimeout(time.Hour))
}

func (t *Telemetry) recordOneSpan() {
	t.RecordSpan(host.Span{Name: "one", Envelope: event.Envelope{ID: "0123456789abcdef0123456789abcdef"}, Start: noon, End: noon})
}

// A flush takes at most a second and ends half a second before the invocation must, for any answer of the collector.
func TestFlushTime(t *testing.T) {
	for _, c := range []struct {
		name            string
		delay, deadline time.Duration
		want            time.Duration
		accepted        int
	}{
		{"the collector answers", 100 * time.Millisecond, time.Minute, 100 * time.Millisecond, 1},
		{"the collector does not answer", time.Hour, time.Minute, time.Second, 0},
		{"the collector does not answer, and no deadline", time.Hour, 0, time.Second, 0},
		{"the collector does not answer, and little time is left", time.Hour, 1200 * time.Millisecond, 700 * time.Millisecond, 0},
		{"the last half second", 0, 500 * time.Millisecond, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				DiscardSDKErrors()
				told, _ := quiet(t, slog.LevelInfo)
				collector := &slowCollector{delay: c.delay}
				told.traces.RegisterSpanProcessor(collector.newProcessor())
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				told.recordOneSpan()
				began := time.Now()
				told.Flush(ctx)
				if took := time.Since(began); took != c.want || collector.accepted != c.accepted {
					t.Errorf("took %s and sent %d spans, want %s and %d", took, collector.accepted, c.want, c.accepted)
				}
				collector.delay = 0 // Close sends the rest.
			})
		})
	}
}

// After a flush that failed, which the log reports, the invocations of the next minute do not wait for the collector.
func TestFlushPausesAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, out := quiet(t, slog.LevelInfo)
		told.ReportSDKErrors()
		defer DiscardSDKErrors()
		collector := &slowCollector{delay: time.Hour}
		told.traces.RegisterSpanProcessor(collector.newProcessor())
		flush := func(want time.Duration) {
			t.Helper()
			told.recordOneSpan()
			began := time.Now()
			told.Flush(t.Context())
			if took := time.Since(began); took != want {
				t.Errorf("a flush took %s, want %s", took, want)
			}
		}
		flush(time.Second)
		if text := out.String(); strings.Count(text, "exporting spans") != 1 {
			t.Errorf("the log has %q", text)
		}
		time.Sleep(30 * time.Second)
		flush(0)
		time.Sleep(31 * time.Second)
		flush(time.Second)
		time.Sleep(61 * time.Second)
		// The collector is back.
		collector.delay = time.Millisecond
		flush(time.Millisecond)
		flush(time.Millisecond)
		if collector.accepted != 2 {
			t.Errorf("two flushes sent %d spans", collector.accepted)
		}
	})
}

// The exporter repeats a request that an overloaded collector refused, but not longer than a flush may take.
func TestFlushToOverloadedCollector(t *testing.T) {
	DiscardSDKErrors()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	told, err := New(t.Context(), Options{Service: "interruption", Cluster: "prod", Out: io.Discard, Tracing: settings.Tracing{HasEndpoint: true}})
	if err != nil {
		t.Fatal(err)
	}
	told.recordOneSpan()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if told.Flush(ctx); ctx.Err() != nil {
		t.Error("the flush took all the time of the invocation")
	}
}
