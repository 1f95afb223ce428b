package memqueue

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// take is one receive without waiting.
func (q *Queue) take(limit int, visibility time.Duration) ([]queue.Message, error) {
	b := q.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.strikes(ReceiveFailed, b.faults.FailReceive) {
		return nil, fault.F("receiving from "+q.name, fault.Retry, "the model failed the call")
	}
	q.sweep()
	records := q.pick(limit)
	messages := make([]queue.Message, 0, len(records))
	for _, r := range records {
		q.deliver(r, visibility)
		messages = append(messages, r.message())
	}
	if len(messages) > 0 && b.strikes(ReceiveAnswerLost, b.faults.LoseReceiveAnswer) {
		return nil, fault.F("receiving from "+q.name, fault.Retry, "the model lost the answer")
	}
	return messages, nil
}

// pick removes up to limit visible records from the line, in order or shuffled.
func (q *Queue) pick(limit int) []*record {
	b := q.broker
	now := b.now()
	if len(q.line) == 0 || q.line[0].visible.After(now) || b.strikes(ReceiveEmpty, b.faults.Empty) {
		return nil
	}
	shuffle := b.strikes(Reordered, b.faults.Reorder)
	depth := limit
	if shuffle {
		depth *= 3
	}
	var records []*record
	for len(records) < depth && len(q.line) > 0 && !q.line[0].visible.After(now) {
		r := q.line.next()
		if q.isDead(r) {
			q.bury(r)
			continue
		}
		records = append(records, r)
	}
	if shuffle {
		b.dice.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	}
	for _, r := range records[min(limit, len(records)):] {
		q.line.add(r)
	}
	return records[:min(limit, len(records))]
}

// deliver makes a picked record a delivery and puts it back in line, hidden.
func (q *Queue) deliver(r *record, visibility time.Duration) {
	b := q.broker
	delete(q.inFlight, r.receipt)
	b.serial++
	r.receives++
	r.receipt = fmt.Sprintf("%s#%d", r.id, b.serial)
	r.visible = b.now().Add(visibility)
	q.inFlight[r.receipt] = r
	q.line.add(r)
	if b.strikes(Duplicated, b.faults.Duplicate) {
		q.duplicate(r, visibility)
	}
}

// duplicate leaves a copy of a delivered record, visible somewhere within the
// delivery's visibility: as when SQS delivers from a server that has not heard.
func (q *Queue) duplicate(r *record, visibility time.Duration) {
	b := q.broker
	b.serial++
	twin := *r
	twin.serial, twin.receipt = b.serial, ""
	twin.visible = b.now()
	if visibility > 0 {
		twin.visible = twin.visible.Add(time.Duration(b.dice.Int64N(int64(visibility))))
	}
	q.stats.Duplicated++
	q.insert(&twin)
}

// drop takes a record out of the queue.
func (q *Queue) drop(r *record) {
	delete(q.inFlight, r.receipt)
	q.line.remove(r)
}
