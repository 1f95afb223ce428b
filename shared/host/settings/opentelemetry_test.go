package settings_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// Spans go to a collector if its URL is set, unless another exporter is chosen or the SDK is turned off.
func TestTracingTarget(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"nothing", nil, "none"},
		{"a collector", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "otlp"},
		{"a collector of traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c:4318"}, "otlp"},
		{"the collector on localhost", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "otlp"},
		{"the console", map[string]string{"OTEL_TRACES_EXPORTER": "Console", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "console"},
		{"no traces", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "none"},
		{"the SDK is off", map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "none"},
		{"another protocol without export", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "none"},
		{"the protocol of traces is stronger", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
		}, "otlp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := settings.Read(environment(c.env))
			if err != nil || got.Tracing.Target() != c.want || got.Tracing.Exports() != (c.want != "none") || len(got.Warnings) > 0 {
				t.Errorf("target %q, want %q, warnings %q, %v", got.Tracing.Target(), c.want, got.Warnings, err)
			}
		})
	}
}

// A protocol in which spans would be lost, and a collector without a URL, are errors with a remedy.
func TestTracingRejects(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/json"} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
			_, err := settings.Read(environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", name: protocol}))
			for _, want := range []string{name, protocol, "set it to http/protobuf", "http://collector:4318"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s=%s: %q is missing in the error: %v", name, protocol, want, err)
				}
			}
		}
	}
	if _, err := settings.Read(environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"})); err == nil || !strings.Contains(err.Error(), "is not a URL") {
		t.Error(err)
	}
}

// The OpenTelemetry specification requires a warning for these values, and that they count as not set.
func TestTracingWarns(t *testing.T) {
	for name, c := range map[string]struct{ value, allowed string }{
		"OTEL_SDK_DISABLED":          {"1", "true, false"},
		"OTEL_TRACES_SAMPLER":        {"xray", "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio"},
		"OTEL_TRACES_SAMPLER_ARG":    {"5%", "a number from 0 to 1"},
		"OTEL_TRACES_EXPORTER":       {"zipkin", "otlp, console, none"},
		"OTEL_RESOURCE_ATTRIBUTES":   {"team", "name=value"},
		"OTEL_EXPORTER_OTLP_TIMEOUT": {"10s", "a number of milliseconds"},
	} {
		got, err := settings.Read(environment(map[string]string{name: c.value, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}))
		if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], name+`="`+c.value+`" is not`) || !strings.Contains(got.Warnings[0], c.allowed) {
			t.Errorf("%s: warnings %q, %v", name, got.Warnings, err)
		}
		if got.Tracing.Target() != "otlp" {
			t.Errorf("%s: a wrong value changed the target to %q", name, got.Tracing.Target())
		}
	}
}

// Headers may contain a secret, which no message shows.
func TestHeadersAreNotShown(t *testing.T) {
	got, err := settings.Read(environment(map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "no pair of s3cret"}))
	if err != nil || len(got.Warnings) > 0 {
		t.Errorf("warnings %q, %v", got.Warnings, err)
	}
}
