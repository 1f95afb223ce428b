package memqueue

// Stats account for every message of a queue since its creation.
type Stats struct {
	// Sent counts accepted messages: sent, put, routed or moved here.
	Sent int
	// Arrived counts messages that another queue's redrive policy moved here.
	Arrived int
	// Duplicated counts the copies that a fault created.
	Duplicated int

	Deleted int
	// Dead counts messages that moved to the DLQ.
	Dead int
	// Moved counts messages that a message-move task removed.
	Moved   int
	Expired int
	Purged  int

	// Visible and Hidden are the current messages.
	Visible, Hidden int
}

// TotalIn returns how many messages entered the queue.
func (s Stats) TotalIn() int { return s.Sent + s.Arrived + s.Duplicated }

// TotalOut returns how many messages left the queue.
func (s Stats) TotalOut() int { return s.Deleted + s.Dead + s.Moved + s.Expired + s.Purged }

// Stats returns the queue's counts.
func (q *Queue) Stats() Stats {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	q.expireMessages()
	s := q.stats
	now := q.broker.now()
	for r := range q.order.allRecords() {
		if r.visible.After(now) {
			s.Hidden++
		} else {
			s.Visible++
		}
	}
	return s
}
