package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/proto"

	collecting "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// hop is a service of a test and the spans that it sampled.
type hop struct {
	*Telemetry
	spans *tracetest.SpanRecorder
}

// newHop starts a service with a sampler of the environment.
func newHop(t *testing.T, service, sampler, ratio string) hop {
	t.Helper()
	t.Setenv("OTEL_TRACES_SAMPLER", sampler)
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", ratio)
	made, err := New(t.Context(), Options{Service: service, Cluster: "prod", Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	h := hop{made, tracetest.NewSpanRecorder()}
	h.traces.RegisterSpanProcessor(h.spans)
	return h
}

// sampled returns the names of the spans that would be exported, by trace.
func (h hop) sampled() map[string][]string {
	out := map[string][]string{}
	for _, s := range h.spans.Ended() {
		if s.SpanContext().IsSampled() {
			id := s.SpanContext().TraceID().String()
			out[id] = append(out[id], s.Name())
		}
	}
	return out
}

// begin is what the watcher does with the n-th batch: it makes the message and reports its first span.
func (h hop) begin(t *testing.T, n int) event.Envelope {
	t.Helper()
	maker := event.Maker{Service: "watcher", Cluster: event.Cluster{Name: "prod"}, Samples: h.SamplesTrace}
	e, err := maker.New(noon, event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: fmt.Sprintf("i-%017x", n), Deadline: noon, Noticed: noon}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.RecordSpan(host.Span{Name: "first", Envelope: e, IsRoot: true, Start: noon, End: noon})
	return e
}

// pass sends a message through a service and returns the message that it causes, decoded from its encoding.
func (h hop) pass(t *testing.T, e event.Envelope) event.Envelope {
	t.Helper()
	encoded, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if e, err = event.Decode(encoded); err != nil {
		t.Fatal(err)
	}
	var next event.Envelope
	maker := event.Maker{Service: h.Service, Cluster: event.Cluster{Name: "prod"}, Samples: h.SamplesTrace}
	if err := h.TraceHandler(func(_ context.Context, e event.Envelope) (err error) {
		next, err = maker.New(noon, event.Tick{Want: event.WantStatus, Due: noon}, &e)
		return err
	})(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return next
}

// The sampler of the service that begins a trace decides for the whole trace, through the encoded messages.
func TestSamplerDecidesOncePerTrace(t *testing.T) {
	for _, c := range []struct {
		first, firstRatio, second string
		low, high                 float64
	}{
		{"", "", "", 1, 1},
		{"parentbased_always_on", "", "parentbased_always_off", 1, 1},
		{"parentbased_always_off", "", "parentbased_always_on", 0, 0},
		{"always_off", "", "", 0, 0},
		{"parentbased_traceidratio", "0.2", "parentbased_always_on", 0.1, 0.3},
		{"traceidratio", "0.2", "parentbased_traceidratio", 0.1, 0.3},
		{"xray", "", "", 1, 1},
	} {
		t.Run(c.first+" then "+c.second, func(t *testing.T) {
			const traces = 500
			first, second, third := newHop(t, "watcher", c.first, c.firstRatio), newHop(t, "planner", c.second, "0.7"), newHop(t, "lifecycle", c.second, "0.7")
			begun := map[string]bool{}
			for n := range traces {
				e := first.begin(t, n)
				begun[e.Correlation] = strings.HasSuffix(e.Traceparent, "-01")
				third.pass(t, second.pass(t, e))
			}
			whole := 0
			for id, sampled := range begun {
				spans := slices.Concat(first.sampled()[id], second.sampled()[id], third.sampled()[id])
				if sampled && len(spans) == 3 {
					whole++
				} else if sampled || len(spans) > 0 {
					t.Fatalf("trace %s begins sampled %t and has the spans %q", id, sampled, spans)
				}
			}
			if share := float64(whole) / traces; share < c.low || share > c.high || math.IsNaN(share) {
				t.Errorf("%.2f of the traces are sampled, want %.1f to %.1f", share, c.low, c.high)
			}
		})
	}
}

// With the sampler always_on a service also samples what its parent did not.
func TestSamplerWithoutParent(t *testing.T) {
	off, on := newHop(t, "watcher", "always_off", ""), newHop(t, "planner", "always_on", "")
	on.pass(t, off.begin(t, 1))
	if len(off.sampled()) != 0 || len(on.sampled()) != 1 {
		t.Errorf("sampled %v, then %v", off.sampled(), on.sampled())
	}
}

// Without the SDK no span is made, and a message keeps the trace context with which it arrived.
func TestDisabledSDK(t *testing.T) {
	made, err := New(t.Context(), Options{Service: "planner", Cluster: "prod", Out: io.Discard, Tracing: settings.Tracing{IsDisabled: true, HasEndpoint: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"} {
		if err := made.TraceHandler(func(_ context.Context, e event.Envelope) error {
			if e.Traceparent != parent {
				t.Errorf("traceparent %q became %q", parent, e.Traceparent)
			}
			return nil
		})(t.Context(), event.Envelope{Traceparent: parent}); err != nil {
			t.Error(err)
		}
	}
	if made.SamplesTrace("0123456789abcdef0123456789abcdef") {
		t.Error("a trace begins sampled")
	}
	made.Flush(t.Context())
	if err := made.Close(); err != nil {
		t.Error(err)
	}
}

// The environment names the service and adds attributes, and the collector gets the headers.
func TestResourceAndHeaders(t *testing.T) {
	var got collecting.ExportTraceServiceRequest
	var header http.Header
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ := io.ReadAll(r.Body)
		if err := proto.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
	}))
	defer collector.Close()
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=platform",
		"OTEL_SERVICE_NAME": "scaler", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=prod,service.name=ignored",
	} {
		t.Setenv(name, value)
	}
	made, err := New(t.Context(), Options{Service: "planner", Version: "v1", Cluster: "prod", Out: io.Discard, Tracing: settings.Tracing{HasEndpoint: true}})
	if err != nil {
		t.Fatal(err)
	}
	made.RecordSpan(host.Span{Name: "one", Envelope: event.Envelope{ID: "0123456789abcdef0123456789abcdef"}, Start: noon, End: noon})
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{}
	for _, a := range got.GetResourceSpans()[0].GetResource().GetAttributes() {
		attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	for name, want := range map[string]string{"service.name": "scaler", "service.version": "v1", "k8s.cluster.name": "prod", "deployment.environment.name": "prod"} {
		if attributes[name] != want {
			t.Errorf("attribute %s is %q, want %q", name, attributes[name], want)
		}
	}
	if header.Get("X-Tenant") != "platform" {
		t.Errorf("headers %v", header)
	}
}

// The console exporter writes each span as one line of JSON between the lines of the log.
func TestConsoleExporter(t *testing.T) {
	var out bytes.Buffer
	made, err := New(t.Context(), Options{Service: "planner", Cluster: "prod", Out: &out, Tracing: settings.Tracing{Exporter: settings.ConsoleExporter}})
	if err != nil {
		t.Fatal(err)
	}
	made.Log.Info("before")
	made.RecordSpan(host.Span{Name: "one", Envelope: event.Envelope{ID: "0123456789abcdef0123456789abcdef"}, Start: noon, End: noon})
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var span struct{ Name string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &span); err != nil || span.Name != "one" || len(lines) != 2 {
		t.Errorf("%v: %q", err, lines)
	}
}

// An error of the SDK is a line of the log with the variable to check.
func TestSDKErrorsAreLogged(t *testing.T) {
	var out bytes.Buffer
	made, err := New(t.Context(), Options{Service: "planner", Cluster: "prod", Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	made.ReportSDKErrors()
	defer DiscardSDKErrors()
	otel.Handle(io.ErrUnexpectedEOF)
	if text := out.String(); !strings.Contains(text, `"level":"WARN"`) || !strings.Contains(text, "unexpected EOF") || !strings.Contains(text, "OTEL_EXPORTER_OTLP_ENDPOINT") {
		t.Errorf("the log has %q", text)
	}
}
