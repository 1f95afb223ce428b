package host

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// LogFields collects what the wide log line of one message says beside the verdict.
type LogFields struct {
	Type, ID, Subject, Cluster, Correlation, Traceparent string
	// Skew is how far the sender's clock is ahead of the queue's, where that is
	// more than MaxSkew.
	Skew time.Duration
	// Pairs are the handler's own: counts, names, effects.
	Pairs []any
}

type logFieldsKey struct{}

// logFieldsContext is a context with a note to write on.
type logFieldsContext struct {
	context.Context
	fields LogFields
}

// Value implements context.Context.
func (n *logFieldsContext) Value(key any) any {
	if key == (logFieldsKey{}) {
		return &n.fields
	}
	return n.Context.Value(key)
}

func logFieldsFrom(ctx context.Context) *LogFields {
	n, _ := ctx.Value(logFieldsKey{}).(*LogFields)
	return n
}

// AddLogFields adds key-value pairs to the line that is logged for this message. Outside
// of a host it does nothing.
func AddLogFields(ctx context.Context, keysAndValues ...any) {
	if n := logFieldsFrom(ctx); n != nil {
		n.Add(keysAndValues...)
	}
}

// Add adds key-value pairs to the note.
func (n *LogFields) Add(keysAndValues ...any) {
	if n.Pairs == nil {
		n.Pairs = make([]any, 0, 12)
	}
	n.Pairs = append(n.Pairs, keysAndValues...)
}

// SetLogFields makes the note the one of this message, for a handler that deals with it as
// a batch of one.
func SetLogFields(ctx context.Context, note LogFields) {
	if n := logFieldsFrom(ctx); n != nil {
		*n = note
	}
}

// DescribeMessage names a message that is no envelope, such as an event of AWS's own, for
// the line and the metrics. The type must come from a list, never from the
// message, or the metrics grow without bound.
func DescribeMessage(ctx context.Context, typ, id, subject string) {
	if n := logFieldsFrom(ctx); n != nil {
		n.Type, n.ID, n.Subject = typ, id, subject
	}
}

// setEnvelope notes whose message it is, and whether clocks disagree: a message
// cannot have been made after the queue took it.
func (n *LogFields) setEnvelope(e event.Envelope, sent time.Time) {
	n.Type, n.ID, n.Subject, n.Cluster = string(e.Type), e.ID, e.Subject, e.Cluster
	n.Correlation, n.Traceparent = e.Correlation, e.Traceparent
	if skew := e.Time.Sub(sent); skew > MaxSkew && !sent.IsZero() {
		n.Skew = skew
	}
}
