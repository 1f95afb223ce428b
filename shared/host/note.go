package host

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Note collects what the wide log line of one message says beside the verdict.
type Note struct {
	Type, ID, Subject, Cluster, Correlation, Traceparent string
	// Skew is how far the sender's clock is ahead of the queue's, where that is
	// more than MaxSkew.
	Skew time.Duration
	// Fields are the handler's own: counts, names, effects.
	Fields []any
}

type noteKey struct{}

// noted is a context with a note to write on.
type noted struct {
	context.Context
	note Note
}

// Value implements context.Context.
func (n *noted) Value(key any) any {
	if key == (noteKey{}) {
		return &n.note
	}
	return n.Context.Value(key)
}

func noteOf(ctx context.Context) *Note {
	n, _ := ctx.Value(noteKey{}).(*Note)
	return n
}

// Say adds key-value pairs to the line that is logged for this message. Outside
// of a host it does nothing.
func Say(ctx context.Context, keysAndValues ...any) {
	if n := noteOf(ctx); n != nil {
		n.Say(keysAndValues...)
	}
}

// Say adds key-value pairs to the note.
func (n *Note) Say(keysAndValues ...any) {
	if n.Fields == nil {
		n.Fields = make([]any, 0, 12)
	}
	n.Fields = append(n.Fields, keysAndValues...)
}

// Noted makes the note the one of this message, for a handler that deals with it as
// a batch of one.
func Noted(ctx context.Context, note Note) {
	if n := noteOf(ctx); n != nil {
		*n = note
	}
}

// About names a message that is no envelope, such as an event of AWS's own, for
// the line and the metrics. The type must come from a list, never from the
// message, or the metrics grow without bound.
func About(ctx context.Context, typ, id, subject string) {
	if n := noteOf(ctx); n != nil {
		n.Type, n.ID, n.Subject = typ, id, subject
	}
}

// envelope notes whose message it is, and whether clocks disagree: a message
// cannot have been made after the queue took it.
func (n *Note) envelope(e event.Envelope, sent time.Time) {
	n.Type, n.ID, n.Subject, n.Cluster = string(e.Type), e.ID, e.Subject, e.Cluster
	n.Correlation, n.Traceparent = e.Correlation, e.Traceparent
	if skew := e.Time.Sub(sent); skew > MaxSkew && !sent.IsZero() {
		n.Skew = skew
	}
}
