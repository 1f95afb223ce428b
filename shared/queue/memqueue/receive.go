package memqueue

import (
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// receiveNow receives without waiting.
func (q *Queue) receiveNow(limit int, visibility time.Duration) ([]queue.Message, error) {
	b := q.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shouldFail(ReceiveFailed, b.faults.FailReceive) {
		return nil, fault.F("receiving from "+q.name, fault.Retry, "injected fault: the call failed")
	}
	q.expireMessages()
	now := b.now()
	records := q.pickRecords(now, limit)
	messages, room := make([]queue.Message, 0, len(records)), bodyBuffer(records)
	for _, r := range records {
		q.deliverRecord(r, now.Add(visibility))
		if b.shouldFail(Duplicated, b.faults.Duplicate) {
			q.duplicateRecord(r, now, visibility)
		}
		messages = append(messages, r.toMessage(room[:0:len(r.body)]))
		room = room[len(r.body):]
	}
	if len(messages) > 0 && b.shouldFail(ReceiveAnswerLost, b.faults.LoseReceiveAnswer) {
		return nil, fault.F("receiving from "+q.name, fault.Retry, "injected fault: the response was lost")
	}
	return messages, nil
}

// bodyBuffer allocates memory for all bodies at once.
func bodyBuffer(records []*record) []byte {
	size := 0
	for _, r := range records {
		size += len(r.body)
	}
	return make([]byte, size)
}

// hasVisible reports whether a record can be received.
func (q *Queue) hasVisible(now time.Time) bool {
	r := q.order.firstRecord()
	return r != nil && !r.visible.After(now)
}

// pickRecords removes up to limit visible records from the heap, in order or shuffled.
func (q *Queue) pickRecords(now time.Time, limit int) []*record {
	b := q.broker
	if !q.hasVisible(now) || b.shouldFail(ReceiveEmpty, b.faults.Empty) {
		return nil
	}
	shuffle := b.shouldFail(Reordered, b.faults.Reorder)
	depth := limit
	if shuffle {
		depth *= 3
	}
	records := make([]*record, 0, depth)
	for len(records) < depth && q.hasVisible(now) {
		r := q.order.popFirst()
		if q.hasMaxReceives(r) {
			q.moveToDLQ(r)
			continue
		}
		records = append(records, r)
	}
	if shuffle {
		b.random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	}
	for _, r := range records[min(limit, len(records)):] {
		q.order.add(r)
	}
	return records[:min(limit, len(records))]
}

// deliverRecord gives a picked record a new receipt and puts it back, hidden until the given time.
func (q *Queue) deliverRecord(r *record, until time.Time) {
	b := q.broker
	if r.receipt != "" {
		delete(q.inFlight, r.receipt)
		r.stale = append(r.stale, r.receipt)
		q.stale[r.receipt] = r
	}
	b.serial++
	r.receives++
	r.receipt = r.id + "#" + strconv.FormatUint(b.serial, 10)
	r.visible = until
	q.inFlight[r.receipt] = r
	q.order.add(r)
}

// duplicateRecord adds a copy of a delivered record that becomes visible within the visibility timeout or up to
// MaxLateness later, as when an SQS server missed the delivery or the delete.
func (q *Queue) duplicateRecord(r *record, now time.Time, visibility time.Duration) {
	b := q.broker
	b.serial++
	twin := *r
	twin.serial, twin.receipt, twin.stale = b.serial, "", nil
	twin.visible = now
	if b.shouldFail(DuplicatedLate, b.faults.LateDuplicate) {
		visibility = MaxLateness
	}
	if visibility > 0 {
		twin.visible = twin.visible.Add(time.Duration(b.random.Int64N(int64(visibility))))
	}
	q.stats.Duplicated++
	q.insertRecord(&twin)
}

// removeRecord removes a record from the queue.
func (q *Queue) removeRecord(r *record) {
	q.forgetReceipts(r)
	q.order.remove(r)
}

// forgetReceipts makes all receipts of a record invalid.
func (q *Queue) forgetReceipts(r *record) {
	delete(q.inFlight, r.receipt)
	for _, receipt := range r.stale {
		delete(q.stale, receipt)
	}
	r.receipt, r.stale = "", nil
}
