package trace

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"io"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// RecordedSpan is a span of an OpenTelemetry trace.
type RecordedSpan struct {
	Trace, ID, Parent string
	Name, Service     string
	Start, End        time.Time
	// Error is the text of the span's error status.
	Error      string
	Attributes map[string]string
	// Links are the trace ids to which the span links.
	Links []string
}

// ReadOTLP reads the output of the collector's file exporter: one TracesData in OTLP's JSON on each line.
// An error is fault.Invalid and contains name.
func ReadOTLP(name string, r io.Reader) (Entries, error) {
	var out Entries
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var data tracepb.TracesData
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(scanner.Bytes(), &data); err != nil {
			out.Skipped++
			continue
		}
		for _, resource := range data.ResourceSpans {
			out.addSpans(resource)
		}
	}
	if err := scanner.Err(); err != nil {
		return out, fault.E("reading the spans "+name, fault.Invalid, err).WithHint("give the output of the collector's file exporter")
	}
	if len(out.Spans) == 0 {
		return out, fault.F("reading the spans "+name, fault.Invalid, "no line has spans in OTLP's JSON").
			WithHint("give the output of the collector's file exporter with format: json")
	}
	return out, nil
}

func (e *Entries) addSpans(resource *tracepb.ResourceSpans) {
	service := ""
	for _, a := range resource.GetResource().GetAttributes() {
		if a.GetKey() == "service.name" {
			service = formatValue(a.GetValue())
		}
	}
	for _, scope := range resource.GetScopeSpans() {
		for _, s := range scope.GetSpans() {
			one := RecordedSpan{
				Trace: hexID(s.GetTraceId()), ID: hexID(s.GetSpanId()), Parent: hexID(s.GetParentSpanId()), Name: s.GetName(), Service: trimService(service),
				Start: time.Unix(0, int64(s.GetStartTimeUnixNano())).UTC(), End: time.Unix(0, int64(s.GetEndTimeUnixNano())).UTC(), Attributes: map[string]string{},
			}
			for _, a := range s.GetAttributes() {
				one.Attributes[a.GetKey()] = formatValue(a.GetValue())
			}
			for _, l := range s.GetLinks() {
				one.Links = append(one.Links, hexID(l.GetTraceId()))
			}
			if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				one.Error = s.GetStatus().GetMessage()
			}
			e.Spans = append(e.Spans, one)
		}
	}
}

// hexID returns an id as hex digits. OTLP's JSON writes ids as hex digits, which protojson reads as base64:
// encoding the result as base64 gives the digits again (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
func hexID(id []byte) string {
	if len(id) == 0 {
		return ""
	}
	text := base64.StdEncoding.EncodeToString(id)
	if _, err := hex.DecodeString(text); err == nil && (len(text) == 32 || len(text) == 16) {
		return text
	}
	return hex.EncodeToString(id)
}

// trimService removes the prefix of the services' default names.
func trimService(name string) string {
	const prefix = "joist-"
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		return name[len(prefix):]
	}
	return name
}

func formatValue(v *commonpb.AnyValue) string {
	if s, ok := v.GetValue().(*commonpb.AnyValue_StringValue); ok {
		return s.StringValue
	}
	text, err := protojson.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}
