package memqueue

import (
	"bytes"
	"container/heap"
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// record is one message that a queue holds.
type record struct {
	id         string
	serial     uint64
	body       []byte
	attributes map[string]string
	sent       time.Time
	visible    time.Time
	receives   int
	// receipt is that of the latest delivery, "" before the first.
	receipt string
	// from is the queue from which the record was moved here as dead.
	from string
	// slot is the record's place in the heap.
	slot int
}

// message is the delivery that a receiver sees. It shares nothing.
func (r *record) message() queue.Message {
	return queue.Message{
		ID: r.id, Body: bytes.Clone(r.body), Receipt: r.receipt, Receives: r.receives,
		Sent: r.sent, Attributes: maps.Clone(r.attributes),
	}
}

// line orders records by when they become visible, then by age.
type line []*record

func (l line) Len() int { return len(l) }
func (l line) Less(i, j int) bool {
	if !l[i].visible.Equal(l[j].visible) {
		return l[i].visible.Before(l[j].visible)
	}
	return l[i].serial < l[j].serial
}
func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].slot, l[j].slot = i, j
}

// Push is for container/heap alone.
func (l *line) Push(x any) {
	r := x.(*record)
	r.slot = len(*l)
	*l = append(*l, r)
}

// Pop is for container/heap alone.
func (l *line) Pop() any {
	last := len(*l) - 1
	r := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return r
}

func (l *line) add(r *record)    { heap.Push(l, r) }
func (l *line) remove(r *record) { heap.Remove(l, r.slot) }
func (l *line) next() *record    { return heap.Pop(l).(*record) }
