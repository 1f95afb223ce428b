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

func line(action host.Action, kind fault.Kind) host.Line {
	return host.Line{
		Service: "planner",
		Note:    host.Note{Type: "pods.unschedulable.v1", ID: "3f", Subject: "batch/7", Cluster: "prod", Correlation: "3e", Fields: []any{"claims", 2}},
		Message: queue.Message{ID: "m", Receives: 3, Sent: noon}, Began: noon.Add(1500 * time.Millisecond), Took: 250 * time.Millisecond,
		Verdict: host.Verdict{Action: action, Kind: kind},
	}
}

func TestLine(t *testing.T) {
	told, out := quiet(t, slog.LevelInfo)
	l := line(host.Hide, fault.Throttled)
	l.Verdict.After, l.Verdict.Reason, l.Note.Skew, l.Err = 3*time.Second, "calling EC2: slow down", 2*time.Minute, errors.New("no route")
	told.Line(l)
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
		"receive_count": 3., "age_ms": 1500., "verdict": "hide", "kind": "throttled", "took_ms": 250., "again_ms": 3000., "skew_ms": 120000.,
		"claims": 2., "error": "calling EC2: slow down", "undone": "no route",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLevels(t *testing.T) {
	skewed, undone := line(host.Delete, ""), line(host.Delete, "")
	skewed.Note.Skew, undone.Err = 2*time.Minute, errors.New("no route")
	for _, c := range []struct {
		name string
		line host.Line
		want slog.Level
	}{
		{"done", line(host.Delete, ""), slog.LevelInfo}, {"stale", line(host.Delete, fault.Stale), slog.LevelInfo},
		{"retried", line(host.Hide, fault.Retry), slog.LevelWarn}, {"skewed", skewed, slog.LevelWarn},
		{"a bug", line(host.Keep, fault.Bug), slog.LevelError}, {"parked", line(host.Park, fault.Poison), slog.LevelError},
		{"undone", undone, slog.LevelError},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, floor := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				told, out := quiet(t, floor)
				told.Line(c.line)
				if (out.Len() > 0) != (c.want >= floor) {
					t.Errorf("at level %s: %q", floor, out)
				}
			}
		})
	}
}

// What a line counts, and that a quiet log counts all the same.
func TestCounts(t *testing.T) {
	told, _ := quiet(t, slog.LevelError)
	told.Line(line(host.Delete, ""))
	told.Line(line(host.Delete, ""))
	told.Line(line(host.Delete, fault.Stale))
	told.Line(line(host.Park, fault.Poison))
	unread := line(host.Park, fault.Poison)
	unread.Note, unread.Err = host.Note{}, errors.New("no route")
	told.Line(unread)
	told.Stepped(time.Second, true, nil)
	told.Stepped(time.Second, false, nil)
	told.Stepped(time.Second, true, fault.F("x", fault.Denied, "y"))
	told.Stepped(time.Second, false, fault.F("x", fault.Retry, "y"))
	w := httptest.NewRecorder()
	told.metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`joist_events_handled_total{service="planner",type="pods.unschedulable.v1",verdict="delete"} 3`,
		`joist_events_handled_total{service="planner",type="pods.unschedulable.v1",verdict="park"} 1`,
		`joist_events_handled_total{service="planner",type="none",verdict="park"} 1`,
		`joist_events_refused_total{kind="stale",service="planner"} 1`,
		`joist_events_refused_total{kind="poison",service="planner"} 2`,
		`joist_dead_letters_total{kind="poison",service="planner"} 1`,
		`joist_verdicts_failed_total{service="planner",verdict="park"} 1`,
		`joist_event_age_seconds_sum{service="planner",type="pods.unschedulable.v1"} 6`,
		`joist_event_handling_seconds_count{service="planner",type="pods.unschedulable.v1"} 4`,
		`joist_step_seconds_count{result="denied",service="planner"} 1`,
		`joist_step_seconds_count{result="retry",service="planner"} 1`,
		`joist_step_seconds_count{result="ok",service="planner"} 1`,
		`joist_looks_failed_total{service="planner"} 2`,
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

// Who listens beside the log hears of each line, also of those that are not logged.
func TestAlso(t *testing.T) {
	told, out := quiet(t, slog.LevelError)
	var heard []string
	told.Also = func(l host.Line) { heard = append(heard, l.Note.ID) }
	told.Line(line(host.Delete, ""))
	if diff := cmp.Diff([]string{"3f"}, heard); diff != "" || out.Len() != 0 {
		t.Error(diff, out)
	}
}
