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
	// receipt is the receipt of the latest delivery, "" before the first.
	receipt string
	// stale are the receipts of earlier deliveries.
	stale []string
	// from is the queue from which the redrive policy moved the record here.
	from string
	// version changes whenever the record enters or leaves the heap: a heap entry with another version is stale.
	version uint32
}

// toMessage returns the message for a receiver, with its body copied into room. It shares no memory with the queue.
func (r *record) toMessage(room []byte) queue.Message {
	return queue.Message{
		ID: r.id, Body: append(room, r.body...), Receipt: r.receipt, Receives: r.receives,
		Sent: r.sent, Attributes: maps.Clone(r.attributes),
	}
}
