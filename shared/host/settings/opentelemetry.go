package settings

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// OpenTelemetry's variables. Its specification (Environment Variable Specification) requires that a wrong value of
// most of them is a warning and that the variable then counts as not set; they have IgnoresWrong.
const (
	SDKDisabled        = "OTEL_SDK_DISABLED"
	ServiceName        = "OTEL_SERVICE_NAME"
	ResourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
	TracesSampler      = "OTEL_TRACES_SAMPLER"
	TracesSamplerArg   = "OTEL_TRACES_SAMPLER_ARG"
	TracesExporter     = "OTEL_TRACES_EXPORTER"
	Traces             = "OTEL_EXPORTER_OTLP_ENDPOINT"
	OTLPProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	OTLPTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	OTLPHeaders        = "OTEL_EXPORTER_OTLP_HEADERS"
	OTLPTimeout        = "OTEL_EXPORTER_OTLP_TIMEOUT"
)

// OpenTelemetry lists the variables of OpenTelemetry that every service reads.
var OpenTelemetry = []string{
	SDKDisabled, ServiceName, ResourceAttributes, TracesSampler, TracesSamplerArg, TracesExporter, Traces, OTLPProtocol, OTLPTracesProtocol, OTLPHeaders, OTLPTimeout,
}

// The destinations of spans.
const (
	NoExporter      = "none"
	OTLPExporter    = "otlp"
	ConsoleExporter = "console"
)

// Tracing configures the spans. The OpenTelemetry SDK reads the sampler, the resource, and headers, timeout, endpoint
// and certificates of the exporter itself, so their values are only checked.
type Tracing struct {
	// IsDisabled turns the SDK off: there are no spans, and messages carry the trace context that they arrived with.
	IsDisabled bool
	// HasEndpoint means that a collector's URL is set. Exporter is empty if it is not set.
	HasEndpoint        bool
	Exporter, Protocol string
}

// Target returns the destination of spans. Unlike OpenTelemetry's SDKs, Joist exports nothing unless the exporter or
// the collector's URL is set, because most clusters have no collector on localhost.
func (t Tracing) Target() string {
	switch {
	case t.IsDisabled:
		return NoExporter
	case t.Exporter != "":
		return t.Exporter
	case t.HasEndpoint:
		return OTLPExporter
	default:
		return NoExporter
	}
}

// Exports reports whether spans are exported.
func (t Tracing) Exports() bool { return t.Target() != NoExporter }

const httpProtobuf = "http/protobuf"

// check refuses protocols in which no span is sent. Spans that go to the port of another protocol are lost.
func (t Tracing) check() error {
	if t.Target() != OTLPExporter || t.Protocol == httpProtobuf {
		return nil
	}
	return fmt.Errorf("%s (or %s) is %q, and spans are only sent as %[4]s: set it to %[4]s, and %[5]s to the collector's HTTP port, usually http://collector:4318",
		OTLPProtocol, OTLPTracesProtocol, t.Protocol, httpProtobuf, Traces)
}

var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

var openTelemetryVariables = []Variable{
	{Name: SDKDisabled, Purpose: "whether the OpenTelemetry SDK is turned off: true or false", Example: "true", Default: "false", IgnoresWrong: true,
		set: parseOTelChoice(func(s *Settings, text string) { s.Tracing.IsDisabled = text == "true" }, "true", "false")},
	{Name: ServiceName, Purpose: "the service name in the resource of spans, instead of joist- and the service", Example: "joist-watcher",
		set: func(*Settings, string) error { return nil }},
	{Name: ResourceAttributes, Purpose: "attributes in the resource of spans", Example: "deployment.environment.name=prod,team=platform", IgnoresWrong: true,
		set: checkPairs},
	{Name: TracesSampler, Purpose: "the sampler of traces (" + strings.Join(samplers, ", ") + ")", Example: "parentbased_traceidratio", Default: "parentbased_always_on", IgnoresWrong: true,
		set: parseOTelChoice(func(*Settings, string) {}, samplers...)},
	{Name: TracesSamplerArg, Purpose: "the share of traces that traceidratio and parentbased_traceidratio sample, from 0 to 1", Example: "0.05", Default: "1", IgnoresWrong: true,
		set: checkRatio},
	{Name: TracesExporter, Purpose: "the destination of spans: otlp, console (the log) or none; without it otlp if a collector's URL is set, and none otherwise", Example: OTLPExporter, IgnoresWrong: true,
		set: parseOTelChoice(func(s *Settings, text string) { s.Tracing.Exporter = text }, OTLPExporter, ConsoleExporter, NoExporter)},
	{Name: Traces, Aliases: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}, Purpose: "the URL of the OpenTelemetry collector that gets the spans", Example: "http://collector:4318",
		set: parseCollector},
	{Name: OTLPProtocol, Purpose: "the protocol of spans; only http/protobuf is supported", Example: httpProtobuf, Default: httpProtobuf,
		set: parseText(func(s *Settings) *string { return &s.Tracing.Protocol })},
	{Name: OTLPTracesProtocol, Purpose: "the protocol of spans, if it is not that of " + OTLPProtocol, Example: httpProtobuf,
		set: parseText(func(s *Settings) *string { return &s.Tracing.Protocol })},
	{Name: OTLPHeaders, Aliases: []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS"}, Purpose: "HTTP headers for the collector", Example: "x-tenant=platform",
		set: func(*Settings, string) error { return nil }}, // Not checked: an error would show a secret.
	{Name: OTLPTimeout, Aliases: []string{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"}, Purpose: "the timeout of an export in milliseconds", Example: "2000", Default: "10000", IgnoresWrong: true,
		set: checkMilliseconds},
}

// parseOTelChoice accepts any case, like the OpenTelemetry SDK.
func parseOTelChoice(set func(s *Settings, text string), allowed ...string) setter {
	return func(s *Settings, text string) error {
		lower := strings.ToLower(strings.TrimSpace(text))
		if !slices.Contains(allowed, lower) {
			return errors.New("is not one of " + strings.Join(allowed, ", "))
		}
		set(s, lower)
		return nil
	}
}

func parseCollector(s *Settings, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("is not a URL with http or https")
	}
	s.Tracing.HasEndpoint = true
	return nil
}

func checkPairs(_ *Settings, text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(value); !found || strings.TrimSpace(name) == "" || err != nil {
			return fmt.Errorf("is not a list name=value,name=value: wrong is %q", pair)
		}
	}
	return nil
}

func checkRatio(_ *Settings, text string) error {
	if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil || !(f >= 0 && f <= 1) {
		return errors.New("is not a number from 0 to 1")
	}
	return nil
}

func checkMilliseconds(_ *Settings, text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 0 {
		return errors.New("is not a number of milliseconds")
	}
	return nil
}
