package memqueue

import (
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
	// version counts how often the record came into line and left it: a place in line
	// with an earlier one is no longer its own.
	version uint32
}

// toMessage is the delivery that a receiver sees, with a body that lies in room. It
// shares nothing with the queue.
func (r *record) toMessage(room []byte) queue.Message {
	return queue.Message{
		ID: r.id, Body: append(room, r.body...), Receipt: r.receipt, Receives: r.receives,
		Sent: r.sent, Attributes: maps.Clone(r.attributes),
	}
}
