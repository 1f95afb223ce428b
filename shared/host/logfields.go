package host

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// LogFields are the fields of one message's log line in addition to the disposition.
type LogFields struct {
	Type, ID, Subject, Cluster, Correlation, Traceparent string
	// Skew is how far the sender's clock is ahead of the queue's, if that is more than MaxSkew; otherwise 0.
	Skew time.Duration
	// Pairs are the handler's own names and values: counts, names, effects.
	Pairs []any
}

type logFieldsKey struct{}

// logFieldsContext is a context that carries LogFields.
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

// AddLogFields adds key-value pairs to the log line of the current message. It does nothing outside a host.
func AddLogFields(ctx context.Context, keysAndValues ...any) {
	if n := logFieldsFrom(ctx); n != nil {
		n.Add(keysAndValues...)
	}
}

// Add appends key-value pairs.
func (n *LogFields) Add(keysAndValues ...any) {
	if n.Pairs == nil {
		n.Pairs = make([]any, 0, 12)
	}
	n.Pairs = append(n.Pairs, keysAndValues...)
}

// SetLogFields replaces the log fields of the current message. A handler that treats the message as a batch of one
// uses it.
func SetLogFields(ctx context.Context, note LogFields) {
	if n := logFieldsFrom(ctx); n != nil {
		*n = note
	}
}

// DescribeMessage sets the type, id and subject of a message without an envelope, such as an AWS event, in its log
// line and metrics. The type must come from a fixed list, never from the message, to bound the cardinality of the
// metrics.
func DescribeMessage(ctx context.Context, typ, id, subject string) {
	if n := logFieldsFrom(ctx); n != nil {
		n.Type, n.ID, n.Subject = typ, id, subject
	}
}

// setEnvelope copies the envelope's fields and sets Skew if the envelope claims to be more than MaxSkew newer than
// the queue's timestamp.
func (n *LogFields) setEnvelope(e event.Envelope, sent time.Time) {
	n.Type, n.ID, n.Subject, n.Cluster = string(e.Type), e.ID, e.Subject, e.Cluster
	n.Correlation, n.Traceparent = e.Correlation, e.Traceparent
	if skew := e.Time.Sub(sent); skew > MaxSkew && !sent.IsZero() {
		n.Skew = skew
	}
}
