package memqueue

import (
	"math"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// hasMaxReceives reports whether the record has had its receives.
func (q *Queue) hasMaxReceives(r *record) bool {
	o := q.options
	grave := q.broker.queues[o.DeadLetter]
	return o.MaxReceives > 0 && r.receives >= o.MaxReceives && grave != nil && grave != q
}

// moveToDLQ moves a record, already out of the line, to the dead-letter queue. Like
// in SQS it keeps its ID and the time when it was sent.
func (q *Queue) moveToDLQ(r *record) {
	grave := q.broker.queues[q.options.DeadLetter]
	delete(q.inFlight, r.receipt)
	q.stats.Dead++
	r.receipt, r.from, r.visible = "", q.name, q.broker.now()
	grave.stats.Arrived++
	grave.insertRecord(r)
}

// MoveMessages is a message-move task that ends at once: it sends the visible messages
// of a dead-letter queue to the queue named by to, or, when to is "", back to the
// queue that each came from. They become new messages with new IDs. A message
// that came from no queue stays.
func (b *Broker) MoveMessages(from, to string) (moved int, err error) {
	return b.MoveUpTo(from, to, math.MaxInt)
}

// MoveUpTo is Move for at most so many messages: a task that is slow, or that is
// cancelled.
func (b *Broker) MoveUpTo(from, to string, limit int) (moved int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[from]
	if q == nil || (to != "" && b.queues[to] == nil) {
		return 0, fault.F("moving messages from "+from, fault.Missing, "there is no queue %q or %q", from, to)
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
		delete(q.inFlight, r.receipt)
		q.stats.Moved++
		target.enqueueRecord(r, 0)
		moved++
	}
	for _, r := range stay {
		q.order.add(r)
	}
	return moved, nil
}

// Purge removes everything.
func (q *Queue) Purge() {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	q.expireMessages()
	q.stats.Purged += q.order.len()
	q.order, q.nextExpiry = visibilityHeap{}, time.Time{}
	clear(q.inFlight)
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

// firstExpiry is when the first record's retention ends, zero for an empty
// queue.
func (q *Queue) firstExpiry() time.Time {
	var first time.Time
	for r := range q.order.allRecords() {
		if at := r.sent.Add(q.options.Retention); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
