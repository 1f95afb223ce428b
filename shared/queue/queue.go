// Package queue is Joist's interface to SQS and to the EventBridge bus: at-least-once delivery, unordered, with a
// visibility timeout.
//
// Every implementation keeps these invariants (queuetest tests them): a message is delivered until it is deleted; a
// receipt is valid until the message is received again; a send that returned nil is durable; a send that returned an
// error may still have succeeded.
package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// MaxBody is the maximum size of a message body in bytes. SQS allows 1 MiB and EventBridge 256 KiB for an entry;
	// the smaller limit applies to both.
	MaxBody = 256 << 10
	// MaxDeadLetter is the maximum size of a DLQ message in bytes with its attributes: SQS's limit, because a foreign
	// sender's message may have that size.
	MaxDeadLetter = 1 << 20
	// MaxBatch is the maximum number of messages in one send or receive.
	MaxBatch = 10
	// MaxVisibility is SQS's longest visibility timeout.
	MaxVisibility = 12 * time.Hour
)

// Outgoing is a message to send. Source and Type become the source and detail-type of an EventBridge entry, and
// message attributes on a queue.
type Outgoing struct {
	Source string
	Type   string
	Body   []byte
	// Attributes are further message attributes on a queue (a DLQ message's reason); the bus drops them.
	Attributes map[string]string
	// IsDeadLetter marks a DLQ message, whose limit is MaxDeadLetter instead of MaxBody. The bus ignores it.
	IsDeadLetter bool
}

// Message is one delivery of a message.
type Message struct {
	// ID is the queue's own. A redrive changes it: never deduplicate by it.
	ID string
	// Body is the sent body, byte for byte.
	Body []byte
	// Receipt identifies this delivery in Delete and Hide.
	Receipt string
	// Receives counts deliveries, including this one.
	Receives int
	// Sent is when the queue accepted the message (SentTimestamp).
	Sent time.Time
	// Attributes are the message attributes that the sender set.
	Attributes map[string]string
}

// Sender sends messages to a queue or to the bus.
type Sender interface {
	// Send sends all messages, in as many calls as necessary. After an error some may have been sent; it is always
	// safe to send all of them again. The caller may reuse the messages' memory after Send returns.
	Send(ctx context.Context, messages ...Outgoing) error
}

// Queue is one queue.
type Queue interface {
	Sender
	// Receive waits up to wait for at least one message and returns at most max, which must not exceed MaxBatch. Each
	// is hidden from other receivers for visibility.
	Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]Message, error)
	// Delete deletes messages. A stale receipt is not an error.
	Delete(ctx context.Context, receipts ...string) error
	// Hide sets how long from now a message stays hidden; zero makes it visible. It returns fault.Missing if the
	// message was received again or deleted. After the visibility timeout it has no effect, and the queue may return
	// nil.
	Hide(ctx context.Context, receipt string, visibility time.Duration) error
	// HideAll is Hide for messages of one receive, in as few calls as possible. It returns Hide's error for each
	// receipt, in their order.
	HideAll(ctx context.Context, visibility time.Duration, receipts ...string) []error
	// Depth returns the approximate number of visible and of hidden messages.
	Depth(ctx context.Context) (visible, hidden int, err error)
}

// EncodeEnvelopes encodes envelopes into messages. It returns an error if one is too large.
func EncodeEnvelopes(envelopes ...event.Envelope) ([]Outgoing, error) {
	out := make([]Outgoing, 0, len(envelopes))
	for _, e := range envelopes {
		body, err := e.Encode()
		if err != nil {
			return nil, err
		}
		if len(body) > MaxBody {
			return nil, fault.E(fmt.Sprintf("sending %s %s", e.Type, e.ID), fault.Bug,
				fmt.Errorf("%d bytes exceed the limit of %d: store the body as a document", len(body), MaxBody))
		}
		out = append(out, Outgoing{Source: e.Source, Type: string(e.Type), Body: body})
	}
	return out, nil
}

// PublishBody wraps the body in an envelope and sends it. cause is the message that led to it, or nil.
func PublishBody(ctx context.Context, to Sender, maker event.Maker, now time.Time, body event.Body, cause *event.Envelope) error {
	envelope, err := maker.New(now, body, cause)
	if err != nil {
		return err
	}
	if err := Publish(ctx, to, envelope); err != nil {
		return fmt.Errorf("publishing %s: %w", envelope.Type, err)
	}
	return nil
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
