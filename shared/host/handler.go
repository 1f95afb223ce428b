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

// Handler handles one message. It returns nil on success; otherwise DecideDisposition decides by the kind of the
// error.
type Handler func(ctx context.Context, m queue.Message) error

// EnvelopeFilter defines which envelopes a service accepts.
type EnvelopeFilter struct {
	// Cluster is the cluster that the queue serves; an envelope of another cluster is Foreign.
	Cluster event.Cluster
	// Types are the types that the service handles. Any other is Poison: it was routed here by mistake, and no other
	// service will receive it.
	Types []event.Type
	Now   func() time.Time
}

// MaxSkew is how far an envelope's time may lie after the queue's own timestamp. A larger difference is reported as
// clock skew. The envelope is not rejected, but it expires as if it had been created at the queue's timestamp plus
// MaxSkew.
const MaxSkew = time.Minute

// NewEventHandler turns a handler of envelopes into a handler of messages. It decodes each message and drops foreign
// and stale ones before any effect.
func NewEventHandler(accept EnvelopeFilter, handle func(ctx context.Context, e event.Envelope) error) Handler {
	return func(ctx context.Context, m queue.Message) error {
		e, err := OpenEnvelope(accept, m)
		// Log dropped envelopes too, if they could be decoded.
		if note := logFieldsFrom(ctx); note != nil && e.ID != "" {
			note.setEnvelope(e, m.Sent)
		}
		if err != nil {
			return err
		}
		return handle(ctx, e)
	}
}

// HandleBody decodes the envelope's body and calls handle with both. The envelope becomes the cause of the events
// that the handler publishes.
func HandleBody[T event.Body](ctx context.Context, handle func(context.Context, event.Envelope, T) error, e event.Envelope) error {
	body, err := event.DecodeBody[T](e)
	if err != nil {
		return err
	}
	return handle(ctx, e, body)
}

// OpenEnvelope decodes the message and checks that this service accepts it and that it has not expired.
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
		return e, fault.F(op, fault.Foreign, "the message is for cluster %q (%s), and this queue serves %q (%s)",
			e.Cluster, e.ClusterUID, accept.Cluster.Name, accept.Cluster.UID)
	case !slices.Contains(accept.Types, e.Type):
		return e, fault.F(op, fault.Poison, "this service does not handle the type").
			WithHint("check the rule or the sender that routed the message to this queue")
	case e.HasExpired(accept.Now()):
		return e, fault.F(op, fault.Stale, "the message expired at %s", e.Expires.Format(time.RFC3339))
	}
	return e, nil
}

// callHandler calls the handler and turns a panic into a Bug error with its stack.
func callHandler(ctx context.Context, handle Handler, m queue.Message) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("handling a message", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	return handle(ctx, m)
}
