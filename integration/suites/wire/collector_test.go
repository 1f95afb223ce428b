package wire

import (
	"cmp"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collecting "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracing "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is a span that a collector received.
type span struct {
	service, name, trace, id, parent string
	// links are spans of other traces, as trace/span.
	links      []string
	attributes map[string]string
}

func (s span) String() string { return s.trace[:8] + "/" + s.id + " " + s.service + ": " + s.name }

// collector is an OpenTelemetry collector on a loopback port.
type collector struct {
	mu    sync.Mutex
	spans []span
}

// collect starts a collector, which receives all spans exported from now on.
func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collecting.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("the collector got %s: %v", r.URL.Path, err)
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		c.take(&request)
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return c
}

func (c *collector) take(request *collecting.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		service := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, read(service, s))
			}
		}
	}
}

func read(service string, s *tracing.Span) span {
	out := span{
		service: service, name: s.GetName(), trace: hex.EncodeToString(s.GetTraceId()), id: hex.EncodeToString(s.GetSpanId()),
		parent: hex.EncodeToString(s.GetParentSpanId()), attributes: map[string]string{},
	}
	for _, l := range s.GetLinks() {
		out.links = append(out.links, hex.EncodeToString(l.GetTraceId())+"/"+hex.EncodeToString(l.GetSpanId()))
	}
	for _, a := range s.GetAttributes() {
		out.attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

// named returns the spans with a name; a final * matches any suffix.
func (c *collector) named(name string) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	begins, open := strings.CutSuffix(name, "*")
	return slices.DeleteFunc(slices.Clone(c.spans), func(s span) bool { return s.name != name && (!open || !strings.HasPrefix(s.name, begins)) })
}

// of returns a span by its trace and id.
func (c *collector) of(trace, id string) (span, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.spans, func(s span) bool { return s.trace == trace && s.id == id })
	if i < 0 {
		return span{}, false
	}
	return c.spans[i], true
}

// below reports whether a span is a descendant of another.
func (c *collector) below(s, top span) bool {
	for known := true; known; s, known = c.of(s.trace, s.parent) {
		if s.trace == top.trace && s.id == top.id {
			return true
		}
	}
	return false
}

// orphans returns the spans whose parent was not exported.
func (c *collector) orphans() []string {
	var out []string
	for _, s := range c.named("*") {
		if _, known := c.of(s.trace, s.parent); s.parent != "" && !known {
			out = append(out, s.String())
		}
	}
	return out
}

// trace returns a trace as text, for debugging.
func (c *collector) trace(id string) string {
	var lines []string
	for _, s := range c.named("*") {
		if s.trace == id {
			lines = append(lines, cmp.Or(s.parent, "-")+" > "+s.String())
		}
	}
	return strings.Join(lines, "\n")
}
