package memqueue

import (
	"strconv"
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
	now := b.now()
	records := q.pick(now, limit)
	messages, room := make([]queue.Message, 0, len(records)), roomFor(records)
	for _, r := range records {
		q.deliver(r, now.Add(visibility))
		if b.strikes(Duplicated, b.faults.Duplicate) {
			q.duplicate(r, now, visibility)
		}
		messages = append(messages, r.message(room[:0:len(r.body)]))
		room = room[len(r.body):]
	}
	if len(messages) > 0 && b.strikes(ReceiveAnswerLost, b.faults.LoseReceiveAnswer) {
		return nil, fault.F("receiving from "+q.name, fault.Retry, "the model lost the answer")
	}
	return messages, nil
}

// roomFor is memory for all bodies in one piece.
func roomFor(records []*record) []byte {
	size := 0
	for _, r := range records {
		size += len(r.body)
	}
	return make([]byte, size)
}

// ready reports whether a record can be received.
func (q *Queue) ready(now time.Time) bool {
	r := q.line.first()
	return r != nil && !r.visible.After(now)
}

// pick removes up to limit visible records from the line, in order or shuffled.
func (q *Queue) pick(now time.Time, limit int) []*record {
	b := q.broker
	if !q.ready(now) || b.strikes(ReceiveEmpty, b.faults.Empty) {
		return nil
	}
	shuffle := b.strikes(Reordered, b.faults.Reorder)
	depth := limit
	if shuffle {
		depth *= 3
	}
	records := make([]*record, 0, depth)
	for len(records) < depth && q.ready(now) {
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

// deliver makes a picked record a delivery and puts it back in line, hidden until
// then.
func (q *Queue) deliver(r *record, until time.Time) {
	b := q.broker
	delete(q.inFlight, r.receipt)
	b.serial++
	r.receives++
	r.receipt = r.id + "#" + strconv.FormatUint(b.serial, 10)
	r.visible = until
	q.inFlight[r.receipt] = r
	q.line.add(r)
}

// duplicate leaves a copy of a delivered record, visible somewhere within the
// delivery's visibility: as when SQS delivers from a server that has not heard.
func (q *Queue) duplicate(r *record, now time.Time, visibility time.Duration) {
	b := q.broker
	b.serial++
	twin := *r
	twin.serial, twin.receipt = b.serial, ""
	twin.visible = now
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
