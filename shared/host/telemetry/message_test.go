package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func quiet(t *testing.T, level slog.Level) (*Telemetry, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	told, err := New(t.Context(), Options{Service: "planner", Version: "v1", Cluster: "prod", Out: &out, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := told.Close(); err != nil {
			t.Error(err)
		}
	})
	return told, &out
}

func line(action host.Action, kind fault.Kind) host.LogLine {
	return host.LogLine{
		Service:   "planner",
		LogFields: host.LogFields{Type: "pods.unschedulable.v1", ID: "3f", Subject: "batch/7", Cluster: "prod", Correlation: "3e", Pairs: []any{"claims", 2}},
		Message:   queue.Message{ID: "m", Receives: 3, Sent: noon}, Start: noon.Add(1500 * time.Millisecond), Duration: 250 * time.Millisecond,
		Disposition: host.MessageDisposition{Action: action, Kind: kind},
	}
}

func TestLine(t *testing.T) {
	told, out := quiet(t, slog.LevelInfo)
	l := line(host.RetryLater, fault.Throttled)
	l.Disposition.RetryAfter, l.Disposition.Reason, l.LogFields.Skew, l.DispositionErr = 3*time.Second, "calling EC2: slow down", 2*time.Minute, errors.New("no route")
	told.LogMessage(l)
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"time": "2026-11-20T12:00:01.75Z", "level": "ERROR", "msg": "handled", "service": "planner",
		"event.type": "pods.unschedulable.v1", "event.id": "3f", "subject": "batch/7", "cluster": "prod", "correlation": "3e",
		"receive_count": 3., "age_ms": 1500., "disposition": "retry", "kind": "throttled", "duration_ms": 250., "retry_after_ms": 3000., "skew_ms": 120000.,
		"claims": 2., "error": "calling EC2: slow down", "disposition_error": "no route",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLevels(t *testing.T) {
	skewed, undone := line(host.Delete, ""), line(host.Delete, "")
	skewed.LogFields.Skew, undone.DispositionErr = 2*time.Minute, errors.New("no route")
	for _, c := range []struct {
		name string
		line host.LogLine
		want slog.Level
	}{
		{"done", line(host.Delete, ""), slog.LevelInfo}, {"stale", line(host.Delete, fault.Stale), slog.LevelInfo},
		{"retried", line(host.RetryLater, fault.Retry), slog.LevelWarn}, {"skewed", skewed, slog.LevelWarn},
		{"a bug", line(host.LeaveHidden, fault.Bug), slog.LevelError}, {"parked", line(host.MoveToDLQ, fault.Poison), slog.LevelError},
		{"disposition_error", undone, slog.LevelError},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, floor := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				told, out := quiet(t, floor)
				told.LogMessage(c.line)
				if (out.Len() > 0) != (c.want >= floor) {
					t.Errorf("at level %s: %q", floor, out)
				}
			}
		})
	}
}

// The metrics that a line counts, also if the log level suppresses the line.
func TestCounts(t *testing.T) {
	told, _ := quiet(t, slog.LevelError)
	told.LogMessage(line(host.Delete, ""))
	told.LogMessage(line(host.Delete, ""))
	told.LogMessage(line(host.Delete, fault.Stale))
	told.LogMessage(line(host.MoveToDLQ, fault.Poison))
	unread := line(host.MoveToDLQ, fault.Poison)
	unread.LogFields, unread.DispositionErr = host.LogFields{}, errors.New("no route")
	told.LogMessage(unread)
	overdue := line(host.RetryLater, fault.Throttled)
	overdue.LogFields.Type, overdue.Message.Sent = "tick.v1", noon.Add(-host.RetryLimit)
	told.LogMessage(overdue)
	told.RecordReconcile(time.Second, true, nil)
	told.RecordReconcile(time.Second, false, nil)
	told.RecordReconcile(time.Second, true, fault.F("x", fault.Denied, "y"))
	told.RecordReconcile(time.Second, false, fault.F("x", fault.Retry, "y"))
	w := httptest.NewRecorder()
	told.metricsHandler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`joist_events_handled_total{disposition="delete",service="planner",type="pods.unschedulable.v1"} 3`,
		`joist_events_handled_total{disposition="dlq",service="planner",type="pods.unschedulable.v1"} 1`,
		`joist_events_handled_total{disposition="dlq",service="planner",type="none"} 1`,
		`joist_events_refused_total{kind="stale",service="planner"} 1`,
		`joist_events_refused_total{kind="poison",service="planner"} 2`,
		`joist_retries_overdue_total{kind="throttled",service="planner"} 1`,
		`joist_retries_overdue_total{kind="stale",service="planner"} 1`,
		`joist_dlq_messages_total{kind="poison",service="planner"} 1`,
		`joist_dispositions_failed_total{disposition="dlq",service="planner"} 1`,
		`joist_event_age_seconds_sum{service="planner",type="pods.unschedulable.v1"} 6`,
		`joist_event_handling_seconds_count{service="planner",type="pods.unschedulable.v1"} 4`,
		`joist_reconcile_seconds_count{result="denied",service="planner"} 1`,
		`joist_reconcile_seconds_count{result="retry",service="planner"} 1`,
		`joist_reconcile_seconds_count{result="ok",service="planner"} 1`,
		`joist_reconciles_failed_total{service="planner"} 2`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %s in\n%s", want, grep(w.Body.String(), want[:20]))
		}
	}
}

func grep(text, prefix string) string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(l, prefix) {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// OnMessage receives each line, also lines that are not logged.
func TestAlso(t *testing.T) {
	told, out := quiet(t, slog.LevelError)
	var heard []string
	told.OnMessage = func(l host.LogLine) { heard = append(heard, l.LogFields.ID) }
	told.LogMessage(line(host.Delete, ""))
	if diff := cmp.Diff([]string{"3f"}, heard); diff != "" || out.Len() != 0 {
		t.Error(diff, out)
	}
}

// TestLevelOfFailures shows that failures which a retry may resolve are warnings.
func TestLevelOfFailures(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"no catalogue is published yet", fault.F("building a batch", fault.Retry, "no catalogue"), "WARN"},
		{"a conflict", fault.F("updating a node", fault.Conflict, "it has changed"), "WARN"},
		{"a missing permission", fault.F("listing pods", fault.Denied, "forbidden"), "ERROR"},
		{"an error without a kind", errors.New("unexpected"), "ERROR"},
	} {
		t.Run(test.name, func(t *testing.T) {
			told, out := quiet(t, slog.LevelInfo)
			told.ErrorLog().Report(noon, test.err)
			var line struct{ Level, Error string }
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if line.Level != test.want || line.Error != test.err.Error() {
				t.Errorf("the line has level %s and error %q, want %s", line.Level, line.Error, test.want)
			}
		})
	}
}
