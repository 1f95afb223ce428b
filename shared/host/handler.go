package host

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Handler deals with one message. It returns nil when the message is dealt
// with; otherwise the kind of the error decides.
type Handler func(ctx context.Context, m queue.Message) error

// Accept says which envelopes a service takes.
type Accept struct {
	// Cluster is whose queue this is; an envelope of another is foreign.
	Cluster event.Cluster
	// Types are those that the service handles; another is poison here, for
	// somebody routed it wrongly and nobody else will take it.
	Types []event.Type
	Now   func() time.Time
}

// MaxSkew is how far an envelope's time may lie after the queue's own stamp
// before the clocks are said to disagree. That is reported, and by itself refuses nothing;
// but the envelope expires as if it had been made no later than that.
const MaxSkew = time.Minute

// Events makes a handler of messages from a handler of envelopes: it decodes,
// and drops what is foreign or stale before any effect.
func Events(accept Accept, handle func(ctx context.Context, e event.Envelope) error) Handler {
	return func(ctx context.Context, m queue.Message) error {
		e, err := Open(accept, m)
		// A dropped envelope is named as well, if it could be decoded.
		if note := noteOf(ctx); note != nil && e.ID != "" {
			note.envelope(e, m.Sent)
		}
		if err != nil {
			return err
		}
		return handle(ctx, e)
	}
}

// Body decodes the body that a handler wants and hands it over with its
// envelope, which becomes the cause of what the handler says.
func Body[T event.Body](ctx context.Context, handle func(context.Context, event.Envelope, T) error, e event.Envelope) error {
	body, err := event.As[T](e)
	if err != nil {
		return err
	}
	return handle(ctx, e, body)
}

// Open decodes the message and checks that it is for this service now.
func Open(accept Accept, m queue.Message) (event.Envelope, error) {
	e, err := event.Decode(m.Body)
	if err != nil {
		return event.Envelope{}, err
	}
	if !m.Sent.IsZero() {
		e.BoundTime(m.Sent.Add(MaxSkew))
	}
	op := fmt.Sprintf("accepting %s %s", e.Type, e.ID)
	switch {
	case !accept.Cluster.Agrees(e.Of()):
		return e, fault.F(op, fault.Foreign, "it is of cluster %q (%s), and this queue serves %q (%s)",
			e.Cluster, e.ClusterUID, accept.Cluster.Name, accept.Cluster.UID)
	case !slices.Contains(accept.Types, e.Type):
		return e, fault.F(op, fault.Poison, "this service does not handle the type").
			WithHint("look at the rule or the sender that routed it here")
	case e.Expired(accept.Now()):
		return e, fault.F(op, fault.Stale, "it expired at %s", e.Expires.Format(time.RFC3339))
	}
	return e, nil
}

// safely calls the handler and turns a panic into a bug, with its stack.
func safely(ctx context.Context, handle Handler, m queue.Message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("handling a message", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	return handle(ctx, m)
}
