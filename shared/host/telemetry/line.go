package telemetry

import (
	"context"
	"log/slog"

	"github.com/joist-autoscaler/joist/shared/host"
)

// Line tells of one message: a wide line of what it was, what became of it and
// what its handler said, and the metrics of the same.
func (t *Telemetry) Line(l host.Line) {
	ctx := context.Background()
	if l.Note.Cluster == "" {
		// AWS's own events name none: whose queue it is says whose they are.
		l.Note.Cluster = t.Cluster
	}
	t.count(&l)
	if t.Also != nil {
		t.Also(l)
	}
	level := level(&l)
	if !t.Log.Enabled(ctx, level) {
		return
	}
	if t.plain.write(&l, level) {
		return
	}
	record := slog.NewRecord(l.Began.Add(l.Took), level, message, 0)
	record.AddAttrs(
		slog.String("event.type", l.Note.Type), slog.String("event.id", l.Note.ID), slog.String("subject", l.Note.Subject),
		slog.String("cluster", l.Note.Cluster), slog.String("correlation", l.Note.Correlation),
		slog.Int("receive_count", l.Message.Receives), slog.Int64("age_ms", l.Age().Milliseconds()),
		slog.String("verdict", string(l.Verdict.Action)), slog.String("kind", string(l.Verdict.Kind)),
		slog.Int64("took_ms", l.Took.Milliseconds()),
	)
	if l.Verdict.After > 0 {
		record.AddAttrs(slog.Int64("again_ms", l.Verdict.After.Milliseconds()))
	}
	if l.Note.Skew > 0 {
		record.AddAttrs(slog.Int64("skew_ms", l.Note.Skew.Milliseconds()))
	}
	record.Add(l.Note.Fields...)
	if l.Verdict.Reason != "" {
		record.AddAttrs(slog.String("error", l.Verdict.Reason))
	}
	if l.Err != nil {
		record.AddAttrs(slog.String("undone", l.Err.Error()))
	}
	_ = t.Log.Handler().Handle(ctx, record)
}

// RefuseRecord logs and counts a record that a function refuses before any handler sees
// it. One whose receipt could not be checked is logged alone.
func (t *Telemetry) RefuseRecord(l host.Line, why host.Strangeness) {
	t.Line(l)
	if why != host.Unchecked {
		t.meters.record(Strange, 1, string(why))
	}
}

// message is that of each line.
const message = "handled"

// level is Error for what a person should look at, Warn for what heals itself,
// and Info for the ordinary: foreign and stale messages are that.
func level(l *host.Line) slog.Level {
	switch {
	case l.Err != nil, l.Verdict.Action == host.Park, l.Verdict.Action == host.Keep:
		return slog.LevelError
	case l.Verdict.Action == host.Hide, l.Note.Skew > 0:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

func (t *Telemetry) count(l *host.Line) {
	service, typ, verdict, kind := l.Service, l.Note.Type, string(l.Verdict.Action), string(l.Verdict.Kind)
	to := t.meters.handled(handled{service, typ, verdict, kind})
	to.count(1)
	to.took(l.Took.Seconds())
	if !l.Message.Sent.IsZero() {
		to.age(l.Age().Seconds())
	}
	if to.refused != nil {
		to.refused(1)
	}
	if l.Note.Skew > 0 {
		t.meters.record(Skewed, 1, service, typ)
	}
	switch {
	case l.Err != nil:
		t.meters.record(Undone, 1, service, verdict)
	case l.Verdict.Action == host.Park:
		t.meters.record(DeadLetters, 1, service, kind)
	}
}
