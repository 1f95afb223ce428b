// Package queue is Joist's word for SQS and for the EventBridge bus: at least
// once, in no order, with a visibility timeout.
//
// The invariants every implementation keeps (queuetest proves them): a message
// is delivered until it is deleted; a receipt is good until the message is
// received again; a send that returned nil is durable; a send that failed may
// still have arrived.
package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// MaxBody is the largest body of a message in bytes. SQS allows 1 MiB and
	// EventBridge 256 KiB for an entry; the smaller of the two holds everywhere.
	MaxBody = 256 << 10
	// MaxDeadLetter is the largest dead letter in bytes, its attributes included: what
	// SQS allows, for a queue may hold what only a stranger could send.
	MaxDeadLetter = 1 << 20
	// MaxBatch is the most messages that one send or one receive may carry.
	MaxBatch = 10
	// MaxVisibility is SQS's longest visibility timeout.
	MaxVisibility = 12 * time.Hour
)

// Outgoing is a message that is not yet sent. Source and Type become the
// source and detail-type of an EventBridge entry, and message attributes on a
// queue.
type Outgoing struct {
	Source string
	Type   string
	Body   []byte
	// Attributes are further message attributes of a queue (a dead letter's
	// reason); the bus does not carry them.
	Attributes map[string]string
	// IsDeadLetter marks a dead letter, which may have MaxDead bytes instead of MaxBody.
	// The bus does not carry it.
	IsDeadLetter bool
}

// Message is one delivery of a message.
type Message struct {
	// ID is the queue's own. A redrive changes it: never deduplicate by it.
	ID string
	// Body is what was sent, byte for byte.
	Body []byte
	// Receipt names this delivery to Delete and Hide.
	Receipt string
	// Receives counts deliveries, this one included.
	Receives int
	// Sent is when the queue took the message (SentTimestamp).
	Sent time.Time
	// Attributes are the message attributes that the sender set.
	Attributes map[string]string
}

// Sender takes messages: a queue, or the bus.
type Sender interface {
	// Send hands over all messages, in as many calls as it takes. On error some
	// may have been taken; sending all of them again is always allowed. Once it has
	// returned, the memory of the messages is the caller's again.
	Send(ctx context.Context, messages ...Outgoing) error
}

// Queue is one queue.
type Queue interface {
	Sender
	// Receive waits up to wait for at least one message and returns at most
	// MaxBatch. Each is hidden from other receivers for visibility.
	Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]Message, error)
	// Delete removes deliveries for good. A stale receipt is not an error.
	Delete(ctx context.Context, receipts ...string) error
	// Hide sets how long from now a delivery stays hidden; zero gives it back.
	// A receipt whose message was received again or deleted is fault.Missing; one
	// whose time is over hides nothing, and a queue need not say so.
	Hide(ctx context.Context, receipt string, visibility time.Duration) error
	// HideAll is Hide for deliveries of one receive, in as few calls as it takes. It
	// answers for each receipt, in their order, with what Hide would have returned.
	HideAll(ctx context.Context, visibility time.Duration, receipts ...string) []error
	// Depth reports the approximate number of visible and of hidden messages.
	Depth(ctx context.Context) (visible, hidden int, err error)
}

// EncodeEnvelopes turns envelopes into messages, refusing one that is too large.
func EncodeEnvelopes(envelopes ...event.Envelope) ([]Outgoing, error) {
	out := make([]Outgoing, 0, len(envelopes))
	for _, e := range envelopes {
		body, err := e.Encode()
		if err != nil {
			return nil, err
		}
		if len(body) > MaxBody {
			return nil, fault.E(fmt.Sprintf("sending %s %s", e.Type, e.ID), fault.Bug,
				fmt.Errorf("%d bytes exceed the limit of %d: its body belongs in a file", len(body), MaxBody))
		}
		out = append(out, Outgoing{Source: e.Source, Type: string(e.Type), Body: body})
	}
	return out, nil
}

// Publish encodes the envelopes and sends them.
func Publish(ctx context.Context, to Sender, envelopes ...event.Envelope) error {
	if len(envelopes) == 0 {
		return nil
	}
	messages, err := EncodeEnvelopes(envelopes...)
	if err != nil {
		return err
	}
	return to.Send(ctx, messages...)
}
