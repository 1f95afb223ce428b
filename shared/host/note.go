package host

import (
	"context"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Note collects what the wide log line of one message says beside the verdict.
type Note struct {
	Type, ID, Subject, Correlation, Traceparent string
	// Fields are the handler's own: counts, names, effects.
	Fields []any
}

type noteKey struct{}

// withNote gives the context a note to write on.
func withNote(ctx context.Context, n *Note) context.Context {
	return context.WithValue(ctx, noteKey{}, n)
}

func noteOf(ctx context.Context) *Note {
	n, _ := ctx.Value(noteKey{}).(*Note)
	return n
}

// Say adds key-value pairs to the line that is logged for this message. Outside
// of a host it does nothing.
func Say(ctx context.Context, keysAndValues ...any) {
	if n := noteOf(ctx); n != nil {
		n.Fields = append(n.Fields, keysAndValues...)
	}
}

func (n *Note) envelope(e event.Envelope) {
	n.Type, n.ID, n.Subject = string(e.Type), e.ID, e.Subject
	n.Correlation, n.Traceparent = e.Correlation, e.Traceparent
}
