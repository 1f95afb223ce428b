package telemetry

import (
	"context"
	"log/slog"

	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// LogMessage logs one message with its disposition and the handler's fields, and counts it in the metrics.
func (t *Telemetry) LogMessage(l host.LogLine) {
	ctx := context.Background()
	if l.LogFields.Cluster == "" {
		// AWS events name no cluster: it is the cluster of the queue.
		l.LogFields.Cluster = t.Cluster
	}
	t.countMessage(&l)
	if t.OnMessage != nil {
		t.OnMessage(l)
	}
	level := logLevel(&l)
	if !t.Log.Enabled(ctx, level) {
		return
	}
	if t.plain.writeLine(&l, level) {
		return
	}
	record := slog.NewRecord(l.Start.Add(l.Duration), level, logMessage, 0)
	record.AddAttrs(
		slog.String("event.type", l.LogFields.Type), slog.String("event.id", l.LogFields.ID), slog.String("subject", l.LogFields.Subject),
		slog.String("cluster", l.LogFields.Cluster), slog.String("correlation", l.LogFields.Correlation),
		slog.Int("receive_count", l.Message.Receives), slog.Int64("age_ms", l.Age().Milliseconds()),
		slog.String("disposition", string(l.Disposition.Action)), slog.String("kind", string(l.Disposition.Kind)),
		slog.Int64("duration_ms", l.Duration.Milliseconds()),
	)
	if l.Disposition.RetryAfter > 0 {
		record.AddAttrs(slog.Int64("retry_after_ms", l.Disposition.RetryAfter.Milliseconds()))
	}
	if l.LogFields.Skew > 0 {
		record.AddAttrs(slog.Int64("skew_ms", l.LogFields.Skew.Milliseconds()))
	}
	record.Add(l.LogFields.Pairs...)
	if l.Disposition.Reason != "" {
		record.AddAttrs(slog.String("error", l.Disposition.Reason))
	}
	if l.DispositionErr != nil {
		record.AddAttrs(slog.String("disposition_error", l.DispositionErr.Error()))
	}
	_ = t.Log.Handler().Handle(ctx, record)
}

// RefuseRecord logs and counts a record that a function rejects before a handler receives it. A record whose receipt
// could not be checked is only logged.
func (t *Telemetry) RefuseRecord(l host.LogLine, why host.RefusalReason) {
	t.LogMessage(l)
	if why != host.UncheckedReceipt {
		t.meters.recordValue(metric.RecordsRefused, 1, string(why))
	}
}

// logMessage is the msg of each line.
const logMessage = "handled"

// logLevel is Error for messages that need attention, Warn for messages that are retried, and Info for the rest,
// including foreign and stale messages.
func logLevel(l *host.LogLine) slog.Level {
	switch {
	case l.DispositionErr != nil, l.Disposition.Action == host.MoveToDLQ, l.Disposition.Action == host.LeaveHidden:
		return slog.LevelError
	case l.Disposition.Action == host.RetryLater, l.LogFields.Skew > 0:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

func (t *Telemetry) countMessage(l *host.LogLine) {
	service, typ, disposition, kind := l.Service, l.LogFields.Type, string(l.Disposition.Action), string(l.Disposition.Kind)
	to := t.meters.messageSinksFor(messageLabels{service, typ, disposition, kind})
	to.count(1)
	to.took(l.Duration.Seconds())
	if !l.Message.Sent.IsZero() {
		to.age(l.Age().Seconds())
	}
	if to.refused != nil {
		to.refused(1)
	}
	if l.IsOverdue() {
		t.meters.recordValue(metric.RetriesOverdue, 1, service, kind)
	}
	if l.LogFields.Skew > 0 {
		t.meters.recordValue(metric.ClockSkews, 1, service, typ)
	}
	switch {
	case l.DispositionErr != nil:
		t.meters.recordValue(metric.DispositionFailures, 1, service, disposition)
	case l.Disposition.Action == host.MoveToDLQ:
		t.meters.recordValue(metric.DLQMessages, 1, service, kind)
	}
}
