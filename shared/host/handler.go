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

// EnvelopeFilter says which envelopes a service takes.
type EnvelopeFilter struct {
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

// NewEventHandler makes a handler of messages from a handler of envelopes: it decodes,
// and drops what is foreign or stale before any effect.
func NewEventHandler(accept EnvelopeFilter, handle func(ctx context.Context, e event.Envelope) error) Handler {
	return func(ctx context.Context, m queue.Message) error {
		e, err := OpenEnvelope(accept, m)
		// A dropped envelope is named as well, if it could be decoded.
		if note := logFieldsFrom(ctx); note != nil && e.ID != "" {
			note.setEnvelope(e, m.Sent)
		}
		if err != nil {
			return err
		}
		return handle(ctx, e)
	}
}

// HandleBody decodes the body that a handler wants and hands it over with its
// envelope, which becomes the cause of what the handler says.
func HandleBody[T event.Body](ctx context.Context, handle func(context.Context, event.Envelope, T) error, e event.Envelope) error {
	body, err := event.DecodeBody[T](e)
	if err != nil {
		return err
	}
	return handle(ctx, e, body)
}

// OpenEnvelope decodes the message and checks that it is for this service now.
func OpenEnvelope(accept EnvelopeFilter, m queue.Message) (event.Envelope, error) {
	e, err := event.Decode(m.Body)
	if err != nil {
		return event.Envelope{}, err
	}
	if !m.Sent.IsZero() {
		e.LimitExpiry(m.Sent.Add(MaxSkew))
	}
	op := fmt.Sprintf("accepting %s %s", e.Type, e.ID)
	switch {
	case !accept.Cluster.Matches(e.SourceCluster()):
		return e, fault.F(op, fault.Foreign, "it is of cluster %q (%s), and this queue serves %q (%s)",
			e.Cluster, e.ClusterUID, accept.Cluster.Name, accept.Cluster.UID)
	case !slices.Contains(accept.Types, e.Type):
		return e, fault.F(op, fault.Poison, "this service does not handle the type").
			WithHint("look at the rule or the sender that routed it here")
	case e.HasExpired(accept.Now()):
		return e, fault.F(op, fault.Stale, "it expired at %s", e.Expires.Format(time.RFC3339))
	}
	return e, nil
}

// callHandler calls the handler and turns a panic into a bug, with its stack.
func callHandler(ctx context.Context, handle Handler, m queue.Message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("handling a message", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	return handle(ctx, m)
}
