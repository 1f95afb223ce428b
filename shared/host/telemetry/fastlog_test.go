package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// anyText draws text that often needs escaping if odd is set.
func anyText(t *rapid.T, label string, odd bool) string {
	if !odd {
		return rapid.StringMatching(`[a-z0-9./ <&>-]{0,12}`).Draw(t, label)
	}
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9./ <&>-]{0,12}`), rapid.String(), rapid.SampledFrom([]string{"\"", "\\", "a\u2028b", "\x7f", "\xff"})).
		Draw(t, label)
}

// TestPlainIsWhatSlogWrites writes lines with and without the fast path and requires the same bytes.
func TestPlainIsWhatSlogWrites(t *testing.T) {
	short, quick := quiet(t, slog.LevelInfo)
	long, slow := quiet(t, slog.LevelInfo)
	// A service name that needs escaping disables the fast path.
	long.plain.service = "\n"
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.Bool().Draw(t, "odd")
		l := host.LogLine{
			Service: "planner",
			LogFields: host.LogFields{
				Type: anyText(t, "type", odd), ID: anyText(t, "id", odd), Subject: anyText(t, "subject", odd), Cluster: anyText(t, "cluster", odd),
				Correlation: anyText(t, "correlation", odd), Skew: time.Duration(rapid.Int64Range(-1, 9).Draw(t, "skew")) * time.Minute,
				Pairs: rapid.SampledFrom([][]any{
					nil, {"a", 1, "b", "text"}, {"a", -1}, {"text", "\""}, {"a"}, {1, 2}, {"a", nil}, {"a", true}, {slog.Int("a", 1)}, {"a", int64(1), "b", 2},
				}).Draw(t, "fields"),
			},
			Message: queue.Message{Receives: rapid.Int().Draw(t, "receives"), Sent: noon},
			Disposition: host.MessageDisposition{
				Action: rapid.SampledFrom([]host.Action{host.Delete, host.RetryLater, host.MoveToDLQ, host.LeaveHidden}).Draw(t, "action"), Kind: fault.Kind(anyText(t, "kind", odd)),
				RetryAfter: time.Duration(rapid.Int64Range(-1, 1e12).Draw(t, "after")), Reason: anyText(t, "reason", odd),
			},
			Start:    rapid.SampledFrom([]time.Time{{}, noon, noon.In(time.FixedZone("east", 3600)), time.Now(), noon.AddDate(9000, 0, 0)}).Draw(t, "began"),
			Duration: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "took")),
		}
		if rapid.Bool().Draw(t, "disposition_error") {
			l.DispositionErr = errors.New(anyText(t, "err", odd))
		}
		quick.Reset()
		slow.Reset()
		short.LogMessage(l)
		long.LogMessage(l)
		if quick.String() != slow.String() {
			t.Fatalf("got  %swant %s", quick, slow)
		}
		if short.plain.writeLine(&l, logLevel(&l)) {
			plain++
		}
	})
	if plain == 0 {
		t.Error("no line was plain")
	}
}

// BenchmarkLine measures the cost of one line, including metrics.
func BenchmarkLine(b *testing.B) {
	var out bytes.Buffer
	told, err := New(b.Context(), Options{Service: "planner", Version: "v1", Cluster: "prod", Out: &out, Level: slog.LevelInfo})
	if err != nil {
		b.Fatal(err)
	}
	l := line(host.Delete, "")
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		told.LogMessage(l)
	}
}
