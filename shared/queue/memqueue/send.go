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

// maxCall is the most bytes that one call may carry, as in SQS.
const maxCall = 1 << 20

// Send takes messages in calls of ten. Faults strike a call, so that of many
// messages some may be taken and some not.
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

// SendBatch is one call: it takes a batch and gives the IDs. After an error the
// batch may have been taken nevertheless (fault.Unknown) or not (fault.Retry).
func (q *Queue) SendBatch(delay time.Duration, batch ...queue.Outgoing) ([]string, error) {
	b := q.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shouldFail(SendFailed, b.faults.FailSend) {
		return nil, fault.F("sending to "+q.name, fault.Retry, "the model failed the call")
	}
	ids := make([]string, 0, len(batch))
	for _, m := range batch {
		ids = append(ids, q.acceptMessage(m.Body, m.MessageAttributes(), delay))
	}
	if b.shouldFail(SendAnswerLost, b.faults.LoseSendAnswer) {
		return nil, fault.F("sending to "+q.name, fault.Unknown, "the model lost the answer")
	}
	return ids, nil
}

// PutRaw lays a body into the queue past every check and fault, as a stranger
// might, and gives its ID.
func (q *Queue) PutRaw(body []byte) string {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	return q.enqueueRecord(&record{body: bytes.Clone(body)}, 0)
}

// acceptMessage takes a new message; a delay by fault comes on top of the queue's or
// the sender's.
func (q *Queue) acceptMessage(body []byte, attributes map[string]string, delay time.Duration) string {
	if delay == 0 {
		delay = q.options.Delay
	}
	r := &record{body: bytes.Clone(body), attributes: maps.Clone(attributes)}
	return q.enqueueRecord(r, delay+q.broker.randomDelay())
}

// enqueueRecord gives a record a new identity and puts it into line.
func (q *Queue) enqueueRecord(r *record, delay time.Duration) string {
	now := q.broker.now()
	r.id = q.broker.newID()
	r.serial = q.broker.serial
	r.sent, r.visible = now, now.Add(delay)
	r.receives, r.receipt, r.from = 0, "", ""
	q.stats.Sent++
	q.insertRecord(r)
	return r.id
}

// insertRecord puts a record into line and minds its expiry.
func (q *Queue) insertRecord(r *record) {
	q.order.add(r)
	if expiry := r.sent.Add(q.options.Retention); q.nextExpiry.IsZero() || expiry.Before(q.nextExpiry) {
		q.nextExpiry = expiry
	}
}
