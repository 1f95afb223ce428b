package memqueue

import (
	"math"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// hasMaxReceives reports whether the record must move to the DLQ.
func (q *Queue) hasMaxReceives(r *record) bool {
	o := q.options
	grave := q.broker.queues[o.DeadLetter]
	return o.MaxReceives > 0 && r.receives >= o.MaxReceives && grave != nil && grave != q
}

// moveToDLQ moves a record that is not in the heap to the DLQ. As in SQS it keeps its ID and sent time.
func (q *Queue) moveToDLQ(r *record) {
	grave := q.broker.queues[q.options.DeadLetter]
	q.forgetReceipts(r)
	q.stats.Dead++
	r.from, r.visible = q.name, q.broker.now()
	grave.stats.Arrived++
	grave.insertRecord(r)
}

// MoveMessages models a message-move task that ends at once: it moves the visible messages of a DLQ to
// the queue named to, or, if to is "", back to their source queues. They become new messages with new IDs. A message
// without a source queue stays.
func (b *Broker) MoveMessages(from, to string) (moved int, err error) {
	return b.MoveUpTo(from, to, math.MaxInt)
}

// MoveUpTo is MoveMessages for at most limit messages, like a slow or cancelled task.
func (b *Broker) MoveUpTo(from, to string, limit int) (moved int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[from]
	if q == nil || (to != "" && b.queues[to] == nil) {
		return 0, fault.F("moving messages from "+from, fault.Missing, "queue %q or %q does not exist", from, to)
	}
	q.expireMessages()
	var stay []*record
	for moved < limit && q.hasVisible(b.now()) {
		r := q.order.popFirst()
		target := b.queues[to]
		if to == "" {
			target = b.queues[r.from]
		}
		if target == nil {
			stay = append(stay, r)
			continue
		}
		q.forgetReceipts(r)
		q.stats.Moved++
		target.enqueueRecord(r, b.now(), 0)
		moved++
	}
	for _, r := range stay {
		q.order.add(r)
	}
	return moved, nil
}

// Purge removes all messages.
func (q *Queue) Purge() {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	q.expireMessages()
	q.stats.Purged += q.order.len()
	q.order, q.nextExpiry = visibilityHeap{}, time.Time{}
	clear(q.inFlight)
	clear(q.stale)
}

// expireMessages removes the records whose retention has ended.
func (q *Queue) expireMessages() {
	now := q.broker.now()
	if q.nextExpiry.IsZero() || now.Before(q.nextExpiry) {
		return
	}
	var expired []*record
	for r := range q.order.allRecords() {
		if !now.Before(r.sent.Add(q.options.Retention)) {
			expired = append(expired, r)
		}
	}
	for _, r := range expired {
		q.removeRecord(r)
	}
	q.stats.Expired += len(expired)
	q.nextExpiry = q.firstExpiry()
}

// firstExpiry returns when the first record's retention ends, or zero for an empty queue.
func (q *Queue) firstExpiry() time.Time {
	var first time.Time
	for r := range q.order.allRecords() {
		if at := r.sent.Add(q.options.Retention); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
