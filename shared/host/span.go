package host

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Span is a part of a trace that is not the handling of a message: the wait before the first message (pending pods,
// an AWS interruption notice), or what only a reconcile observes (a node that appeared or disappeared).
type Span struct {
	Name string
	// Envelope is the message whose trace the span belongs to.
	Envelope event.Envelope
	// IsRoot makes it the trace's root span, above everything that Envelope causes. Otherwise its parent is the span
	// of Envelope's traceparent.
	IsRoot     bool
	Start, End time.Time
	// Links are the W3C trace contexts of other traces that led to this one.
	Links []string
	// Fields are names and values, like LogFields.Pairs.
	Fields []any
}
