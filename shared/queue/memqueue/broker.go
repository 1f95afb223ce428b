// Package memqueue is a seeded in-memory model of SQS and EventBridge: queues and a bus, with the faults of the real
// services as options.
//
// Simulators rely on three properties. It is deterministic: the same seed and calls give the same results, because
// time comes only from Options.Now, randomness only from the seed, and there are no goroutines. It counts every fault
// that happened (Broker.Counts). And Broker.CheckConservation verifies that every accepted message is accounted for.
//
// Without faults, a queue delivers messages in the order in which they became visible. It is safe for concurrent use,
// but then results also depend on the order of the calls.
package memqueue

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Options configure a broker.
type Options struct {
	// Now is the clock. It must not go backwards.
	Now  func() time.Time
	Seed uint64
	// Faults are the initial faults; SetFaults changes them.
	Faults Faults
	// Idle is called by a Receive that may wait and finds no message. It should let time pass until that moment, and
	// may return early when a message was sent. If it is nil, such a Receive returns at once, so that a virtual clock
	// never blocks.
	Idle func(ctx context.Context, until time.Time) error
}

// Broker holds queues and buses, and their shared random source.
type Broker struct {
	mu     sync.Mutex
	now    func() time.Time
	idle   func(ctx context.Context, until time.Time) error
	random *rand.Rand
	faults Faults
	counts map[Fault]int
	queues map[string]*Queue
	buses  map[string]*Bus
	serial uint64
}

// New returns an empty broker.
func New(o Options) *Broker {
	return &Broker{
		now: o.Now, idle: o.Idle, faults: o.Faults,
		random: rand.New(rand.NewPCG(o.Seed, 0x6a6f697374)),
		counts: map[Fault]int{}, queues: map[string]*Queue{}, buses: map[string]*Bus{},
	}
}

// Queue returns the queue with that name. The first call creates it, and later calls replace its options.
func (b *Broker) Queue(name string, o QueueOptions) *Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		q = &Queue{broker: b, name: name, inFlight: map[string]*record{}, stale: map[string]*record{}}
		b.queues[name] = q
	}
	q.options = o.withDefaults()
	q.nextExpiry = q.firstExpiry()
	return q
}

// FindQueue returns an existing queue.
func (b *Broker) FindQueue(name string) (*Queue, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, ok := b.queues[name]
	return q, ok
}

// Queues returns the names of all queues, sorted.
func (b *Broker) Queues() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.queues))
}

// Buses returns the names of all buses, sorted.
func (b *Broker) Buses() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.buses))
}

// Now returns the time of the broker's clock.
func (b *Broker) Now() time.Time { return b.now() }

// NextVisible returns when the next message of any queue can be received: now or earlier if one can be already, the
// zero time if none exists.
func (b *Broker) NextVisible() time.Time {
	var next time.Time
	for _, name := range b.Queues() {
		q, _ := b.FindQueue(name)
		if at := q.NextVisible(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// CheckConservation returns an error for the first queue that lost or created messages.
func (b *Broker) CheckConservation() error {
	for _, name := range b.Queues() {
		q, _ := b.FindQueue(name)
		if s := q.Stats(); s.TotalIn() != s.TotalOut()+s.Visible+s.Hidden {
			return fmt.Errorf("queue %s lost or duplicated messages: %+v", name, s)
		}
	}
	return nil
}

// newID returns an id in the format of a UUID. The caller must hold the lock, as for everything that uses the random
// source.
func (b *Broker) newID() string {
	b.serial++
	high, low := b.random.Uint64(), b.random.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, b.serial&0xffffffffffff)
}
