package trace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	id    = "0123456789abcdef0123456789abcdef"
	other = "fedcba9876543210fedcba9876543210"
)

// lineOf returns a line about a message of the first trace.
func lineOf(service, typ, message, subject string, attempt int, more string) string {
	return fmt.Sprintf(`{"time":"2026-01-02T03:04:%02dZ","level":"INFO","msg":"handled","service":%q,"event.type":%q,"event.id":%q,"subject":%q,"cluster":"shop","correlation":%q,"receive_count":%d,"age_ms":1000,"duration_ms":500%s}`,
		5+attempt, service, typ, message, subject, id, attempt, more)
}

// TestReadLog reads lines with text around them, EventBridge's events, and the output of the AWS CLI.
func TestReadLog(t *testing.T) {
	fact := `{"version":"0","detail-type":"instance.gone.v1","source":"joist/interruption","detail":{"specversion":"1.0","id":"m2","source":"joist/interruption","type":"instance.gone.v1","subject":"instance/i-1","time":"2026-01-02T03:04:09Z","correlation":"` + id + `","data":{"instanceId":"i-1"}}}`
	line := lineOf("lifecycle", "instance.gone.v1", "m2", "instance/i-1", 1, "")
	for _, tt := range []struct {
		name, text            string
		facts, lines, skipped int
	}{
		{"lines", fact + "\n" + line + "\n", 1, 1, 0},
		{"text around the lines", "2026-01-02T03:04:05 stream " + line + "\nSTART RequestId: 1\n\n{broken\n" + `{"msg":"started"}` + "\n", 0, 1, 3},
		{"the output of the AWS CLI", "{\n  \"events\": [\n    {\"message\": " + fmt.Sprintf("%q", fact) + "}\n  ]\n}\n", 1, 0, 0},
		{"an envelope", fact[strings.Index(fact, `{"spec`):len(fact)-1] + "\n", 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := trace.ReadLog("log", strings.NewReader(tt.text))
			if err != nil || len(got.Facts) != tt.facts || len(got.Lines) != tt.lines || got.Skipped != tt.skipped {
				t.Errorf("%d facts, %d lines, %d skipped, %v", len(got.Facts), len(got.Lines), got.Skipped, err)
			}
		})
	}
	for _, text := range []string{"", "hello\n", `{"events": [`, "\x00\x01\x02"} {
		if _, err := trace.ReadLog("odd.log", strings.NewReader(text)); !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestResults builds the step of each disposition; attempts of one message are one step.
func TestResults(t *testing.T) {
	for _, tt := range []struct{ name, more, want string }{
		{"handled", `,"disposition":"delete","kind":""`, trace.ResultHandled},
		{"dropped", `,"disposition":"delete","kind":"stale","error":"expired"`, trace.ResultDropped},
		{"retried", `,"disposition":"retry","kind":"throttled","retry_after_ms":2000,"error":"slow down"`, trace.ResultRetried},
		{"moved to the DLQ", `,"disposition":"dlq","kind":"poison","error":"unreadable"`, trace.ResultDLQ},
		{"left hidden", `,"disposition":"keep","kind":"bug","error":"panic"`, trace.ResultHidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := lineOf("launcher", "launch.requested.v1", "m1", "intent/a", 1, `,"disposition":"retry","kind":"throttled","error":"slow down"`) + "\n" + lineOf("launcher", "launch.requested.v1", "m1", "intent/a", 2, tt.more)
			entries, err := trace.ReadLog("log", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			got := trace.Build(entries, trace.Query{Title: "m1", IDs: []string{"m1"}})
			if len(got.Steps) != 1 || got.Steps[0].Result != tt.want || got.Steps[0].Attempts != 2 {
				t.Fatalf("%+v", got.Steps)
			}
			if s := got.Steps[0]; s.End.Sub(s.Begin) != 500*time.Millisecond || s.Begin.Sub(s.Sent) != 2*time.Second {
				t.Errorf("sent %s, from %s to %s", s.Sent, s.Begin, s.End)
			}
		})
	}
}

// TestBuildSelectsTheObject leaves out other launches of the same trace, other traces and longer names.
func TestBuildSelectsTheObject(t *testing.T) {
	lines := []string{
		lineOf("planner", "pods.unschedulable.v1", "m1", "batch/1", 1, ""), lineOf("launcher", "launch.requested.v1", "m2", "intent/mine", 2, ""),
		lineOf("launcher", "launch.requested.v1", "m3", "intent/other", 3, ""), strings.ReplaceAll(lineOf("launcher", "launch.requested.v1", "m4", "intent/mine-2", 4, ""), id, other),
	}
	entries, err := trace.ReadLog("log", strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	got := trace.Build(entries, trace.Query{Names: []string{"mine"}, Intents: []string{"mine"}})
	if len(got.Steps) != 2 || got.Steps[1].Message != "m2" || len(got.Traces) != 1 {
		t.Errorf("%+v", got)
	}
	if none := trace.Build(entries, trace.Query{Names: []string{"mine"}, Since: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}); len(none.Steps) > 0 {
		t.Errorf("%+v", none.Steps)
	}
}

// spans is a line of the collector's file exporter: two spans of a trace, one of which is an error and
// links to another trace.
const spans = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"joist-planner"}}]},"scopeSpans":[{"scope":{"name":"joist"},"spans":[` +
	`{"traceId":"` + id + `","spanId":"0123456789abcdef","parentSpanId":"","name":"pods pending","kind":4,"startTimeUnixNano":"1767323045000000000","endTimeUnixNano":"1767323046000000000","attributes":[{"key":"joist.pods","value":{"stringValue":"3"}}],"links":[{"traceId":"` + other + `","spanId":"fedcba9876543210"}],"status":{}},` +
	`{"traceId":"` + id + `","spanId":"1123456789abcdef","parentSpanId":"0123456789abcdef","name":"process pods.unschedulable.v1","kind":5,"startTimeUnixNano":"1767323046000000000","endTimeUnixNano":"1767323047000000000","attributes":[{"key":"messaging.message.id","value":{"stringValue":"m1"}},{"key":"joist.subject","value":{"stringValue":"batch/1"}}],"status":{"code":2,"message":"no catalogue"}}` +
	`]}]}]}`

// TestReadOTLP reads spans, and adds those of known messages to the steps of the log.
func TestReadOTLP(t *testing.T) {
	entries, err := trace.ReadOTLP("traces.jsonl", strings.NewReader(spans+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := trace.Build(entries, trace.Query{IDs: []string{id}})
	if len(got.Steps) != 2 || got.Steps[0].What != "pods pending" || got.Steps[0].Service != "planner" || got.Steps[0].Detail != "pods=3" || got.Steps[1].Result != trace.ResultFailed || got.Steps[1].Detail != "no catalogue" {
		t.Errorf("%+v", got.Steps)
	}
	if len(got.Related) != 1 || got.Related[0] != other {
		t.Errorf("linked to %v", got.Related)
	}
	log, err := trace.ReadLog("log", strings.NewReader(lineOf("planner", "pods.unschedulable.v1", "m1", "batch/1", 1, "")))
	if err != nil {
		t.Fatal(err)
	}
	entries.Add(log)
	both := trace.Build(entries, trace.Query{IDs: []string{id}})
	if len(both.Steps) != 2 || both.Steps[1].End.Sub(both.Steps[1].Begin) != time.Second {
		t.Errorf("%+v", both.Steps)
	}
	for _, text := range []string{"", "hello", "{}", `{"resourceSpans":3}`} {
		if _, err := trace.ReadOTLP("odd", strings.NewReader(text)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
