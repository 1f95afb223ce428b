package host

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// Span is a part of a story that is not the handling of a message: what came before the
// first message, as pods that waited or a notice of AWS, and what only a look saw, as a
// node that came or went.
type Span struct {
	Name string
	// Envelope is the message whose story it is.
	Envelope event.Envelope
	// IsRoot says that it is the span that Of.Root names, above everything that Of leads
	// to; else it is below the one that Of's traceparent names.
	IsRoot     bool
	Start, End time.Time
	// Links are W3C contexts of other stories that led to this one.
	Links []string
	// Fields are names and their values, as those of Note.
	Fields []any
}
