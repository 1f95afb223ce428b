package memqueue

// Stats account for every message of a queue since its beginning.
type Stats struct {
	// Sent counts messages that were taken: sent, put, routed or moved here.
	Sent int
	// Arrived counts dead letters that came by redrive policy.
	Arrived int
	// Duplicated counts the copies that a fault made.
	Duplicated int

	Deleted int
	// Dead counts messages that went to the dead-letter queue.
	Dead int
	// Moved counts messages that a message-move task took away.
	Moved   int
	Expired int
	Purged  int

	// Visible and Hidden are what the queue holds now.
	Visible, Hidden int
}

// TotalIn is how many messages came to be in the queue.
func (s Stats) TotalIn() int { return s.Sent + s.Arrived + s.Duplicated }

// TotalOut is how many left it.
func (s Stats) TotalOut() int { return s.Deleted + s.Dead + s.Moved + s.Expired + s.Purged }

// Stats counts the queue's messages.
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
