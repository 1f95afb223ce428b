package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// The parent of a second hop is the first hop's span, and both are in the trace that the correlation id names.
func TestTraceCarriesTheStory(t *testing.T) {
	told, _ := quiet(t, slog.LevelInfo)
	spans := tracetest.NewSpanRecorder()
	told.traces.RegisterSpanProcessor(spans)
	maker := event.Maker{Service: "watcher", Cluster: event.Cluster{Name: "prod"}}
	first, err := maker.New(noon, event.InventoryWanted{Asked: noon}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var second event.Envelope
	if err := told.TraceHandler(func(_ context.Context, e event.Envelope) (err error) {
		second, err = maker.New(noon, event.Tick{Want: event.WantStatus, Due: noon}, &e)
		return err
	})(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := told.TraceHandler(func(context.Context, event.Envelope) error { return errors.New("no luck") })(t.Context(), second); err == nil {
		t.Fatal("the handler's error is lost")
	}
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans", len(ended))
	}
	a, b := ended[0], ended[1]
	if id := a.SpanContext().TraceID().String(); id != first.Correlation || a.Parent().IsValid() {
		t.Errorf("the first span is in trace %s, want %s, under %v", id, first.Correlation, a.Parent())
	}
	if b.Parent().SpanID() != a.SpanContext().SpanID() || b.SpanContext().TraceID() != a.SpanContext().TraceID() {
		t.Errorf("the second span is not below the first: %v", b.Parent())
	}
	if want := "00-" + first.Correlation + "-" + a.SpanContext().SpanID().String() + "-01"; second.Traceparent != want {
		t.Errorf("traceparent %s, want %s", second.Traceparent, want)
	}
	if a.Status().Code != codes.Unset || b.Status().Code != codes.Error || b.Name() != "process tick.v1" {
		t.Errorf("%v, then %s with %v", a.Status(), b.Name(), b.Status())
	}
}

func TestTraceOf(t *testing.T) {
	known := event.DeriveID("x", event.Cluster{Name: "prod"})
	if got := traceIDFrom(known).String(); got != known {
		t.Errorf("%s became %s", known, got)
	}
	if a, b := traceIDFrom("scheduler-1"), traceIDFrom("scheduler-1"); a != b || !a.IsValid() || a == traceIDFrom("scheduler-2") {
		t.Error("an id that is not ours is not hashed")
	}
	if a, b := traceIDFrom(""), traceIDFrom(""); a == b || !a.IsValid() {
		t.Error("without an id none is drawn")
	}
}

// A span that cannot be exported causes no failure.
func TestExportWithoutCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
	told, err := New(t.Context(), Options{Service: "planner", Out: t.Output(), Tracing: settings.Tracing{HasEndpoint: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := told.TraceHandler(func(context.Context, event.Envelope) error { return nil })(t.Context(), event.Envelope{}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	told.Flush(ctx)
}

// A function may be frozen once its invocation ends, so all spans are exported before.
func TestFlushExports(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = got.ReadFrom(r.Body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	told, err := New(t.Context(), Options{Service: "planner", Cluster: "prod", Out: t.Output(), Tracing: settings.Tracing{HasEndpoint: true}, CloudWatch: ToLog})
	if err != nil {
		t.Fatal(err)
	}
	story := event.Envelope{Type: "plan.made.v1", Cluster: "prod", Correlation: event.DeriveID("x", event.Cluster{Name: "prod"})}
	if err := told.TraceHandler(func(context.Context, event.Envelope) error { return nil })(t.Context(), story); err != nil {
		t.Fatal(err)
	}
	told.RecordSpan(host.Span{Name: "node initialized", Envelope: story, Start: noon, End: noon.Add(time.Minute)})
	told.Flush(t.Context())
	mu.Lock()
	defer mu.Unlock()
	id, err := hex.DecodeString(story.Correlation)
	if err != nil {
		t.Fatal(err)
	}
	if text := got.String(); !strings.Contains(text, "process plan.made.v1") || !strings.Contains(text, "node initialized") || strings.Count(text, string(id)) != 2 {
		t.Errorf("the collector got %q", text)
	}
}

func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pulse := &Heartbeat{Name: "the poller", Limit: time.Minute}
		pulse.Record()
		ready := errors.New("the cache is not synced")
		handler := Probes{Alive: pulse.Check, Ready: func() error { return ready }}.handler()
		get := func(path string) (int, string) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			return w.Code, w.Body.String()
		}
		if code, body := get("/healthz"); code != 200 {
			t.Error(code, body)
		}
		if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "not synced") {
			t.Error(code, body)
		}
		ready = nil
		time.Sleep(time.Minute + time.Second)
		if code, body := get("/healthz"); code != 503 || !strings.Contains(body, "the poller: it has not moved for 1m1s") {
			t.Error(code, body)
		}
		if code, _ := get("/readyz"); code != 200 {
			t.Error(code)
		}
		pulse.Record()
		if code, _ := get("/healthz"); code != 200 {
			t.Error(code)
		}
	})
}

// A port that is in use is an Invalid error with a hint.
func TestServe(t *testing.T) {
	told, _ := quiet(t, slog.LevelInfo)
	if err := told.Serve(t.Context(), Ports{}, Probes{}); err != nil {
		t.Error(err)
	}
	taken, err := net.Listen("tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if err := told.Serve(t.Context(), Ports{Health: port}, Probes{}); err == nil || !strings.Contains(err.Error(), "HEALTH_PROBE_PORT") {
		t.Error(err)
	}
}
