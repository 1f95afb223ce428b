package memqueue

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// maxCall is the maximum size of one call in bytes, as in SQS.
const maxCall = 1 << 20

// Send sends messages in calls of at most ten. Faults affect one call, so some messages may be accepted and others
// not.
func (q *Queue) Send(ctx context.Context, messages ...queue.Outgoing) error {
	batches, err := queue.SplitBatches(maxCall, messages...)
	if err != nil {
		return fmt.Errorf("sending to %s: %w", q.name, err)
	}
	for _, batch := range batches {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sending to %s: %w", q.name, err)
		}
		_, err := q.SendBatch(0, batch...)
		if err != nil {
			return err
		}
	}
	return nil
}

// SendBatch models one call: it accepts a batch and returns the IDs. After fault.Unknown the batch was accepted;
// after fault.Retry it was not.
func (q *Queue) SendBatch(delay time.Duration, batch ...queue.Outgoing) ([]string, error) {
	b := q.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shouldFail(SendFailed, b.faults.FailSend) {
		return nil, fault.F("sending to "+q.name, fault.Retry, "injected fault: the call failed")
	}
	ids := make([]string, 0, len(batch))
	for _, m := range batch {
		ids = append(ids, q.acceptMessage(m.Body, m.MessageAttributes(), delay))
	}
	if b.shouldFail(SendAnswerLost, b.faults.LoseSendAnswer) {
		return nil, fault.F("sending to "+q.name, fault.Unknown, "injected fault: the response was lost")
	}
	return ids, nil
}

// PutRaw adds a body without any check or fault, for messages from foreign senders, and returns its ID.
func (q *Queue) PutRaw(body []byte) string {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	return q.enqueueRecord(&record{body: bytes.Clone(body)}, q.broker.now(), 0)
}

// acceptMessage adds a new message. delay overrides the queue's Delay if it is not zero; a delay by a fault is added.
func (q *Queue) acceptMessage(body []byte, attributes map[string]string, delay time.Duration) string {
	if delay == 0 {
		delay = q.options.Delay
	}
	r := &record{body: bytes.Clone(body), attributes: maps.Clone(attributes)}
	return q.enqueueRecord(r, q.broker.now(), delay+q.broker.randomDelay())
}

// acceptEvent adds a new message of a bus, which arrives after the delay of its fault.
func (q *Queue) acceptEvent(body []byte, attributes map[string]string) {
	b := q.broker
	r := &record{body: bytes.Clone(body), attributes: maps.Clone(attributes)}
	q.enqueueRecord(r, b.now().Add(b.randomEventDelay()), q.options.Delay+b.randomDelay())
}

// enqueueRecord gives a record a new identity and adds it to the queue. It is visible after a delay from when it was
// sent, which may be later than now.
func (q *Queue) enqueueRecord(r *record, sent time.Time, delay time.Duration) string {
	r.id = q.broker.newID()
	r.serial = q.broker.serial
	r.sent, r.visible = sent, sent.Add(delay)
	r.receives, r.from = 0, ""
	q.stats.Sent++
	q.insertRecord(r)
	return r.id
}

// insertRecord adds a record and updates the next expiry.
func (q *Queue) insertRecord(r *record) {
	q.order.add(r)
	if expiry := r.sent.Add(q.options.Retention); q.nextExpiry.IsZero() || expiry.Before(q.nextExpiry) {
		q.nextExpiry = expiry
	}
}
