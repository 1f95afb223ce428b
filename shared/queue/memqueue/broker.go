// Package memqueue is a seeded model of SQS and EventBridge: queues and a bus
// in memory, with the faults of the real ones as switches.
//
// A simulator needs three things of it. It is deterministic: the same seed and
// the same calls give the same answers, for time comes only from Options.Now,
// chance only from the seed, and there are no goroutines. It is honest: every
// fault that really happened is counted (Broker.Counts). And it conserves:
// Broker.Conserved proves that every message that was taken is accounted for.
//
// Without faults, a queue gives messages in the order in which they became
// visible. It is safe for concurrent use, but then the order of the calls is
// not the seed's.
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

// Options say what a broker runs on.
type Options struct {
	// Now is the clock. It must not go backwards.
	Now  func() time.Time
	Seed uint64
	// Faults are those of the beginning; SetFaults changes them.
	Faults Faults
	// Idle is called by a Receive that may wait and finds nothing: it should
	// let time pass until that moment, and may return early when something was
	// sent. Without it such a Receive returns empty at once, so that a virtual
	// clock never blocks.
	Idle func(ctx context.Context, until time.Time) error
}

// Broker holds queues and buses, and the chance that they share.
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

// New makes an empty broker.
func New(o Options) *Broker {
	return &Broker{
		now: o.Now, idle: o.Idle, faults: o.Faults,
		random: rand.New(rand.NewPCG(o.Seed, 0x6a6f697374)),
		counts: map[Fault]int{}, queues: map[string]*Queue{}, buses: map[string]*Bus{},
	}
}

// Queue gives the queue of that name, made with the options at the first call
// and configured with them at later ones.
func (b *Broker) Queue(name string, o QueueOptions) *Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		q = &Queue{broker: b, name: name, inFlight: map[string]*record{}}
		b.queues[name] = q
	}
	q.options = o.withDefaults()
	q.nextExpiry = q.firstExpiry()
	return q
}

// FindQueue finds a queue that was made before.
func (b *Broker) FindQueue(name string) (*Queue, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, ok := b.queues[name]
	return q, ok
}

// Queues lists the names of all queues, sorted.
func (b *Broker) Queues() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.queues))
}

// Now is the broker's clock.
func (b *Broker) Now() time.Time { return b.now() }

// NextVisible is when the next message of any queue can be received: now or
// earlier when one can be already, the zero time when there is none.
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

// CheckConservation reports the first queue whose messages do not add up.
func (b *Broker) CheckConservation() error {
	for _, name := range b.Queues() {
		q, _ := b.FindQueue(name)
		if s := q.Stats(); s.TotalIn() != s.TotalOut()+s.Visible+s.Hidden {
			return fmt.Errorf("queue %s lost or made messages: %+v", name, s)
		}
	}
	return nil
}

// newID makes an identifier in the shape of a UUID. It is called with the lock
// held, as is all that rolls dice.
func (b *Broker) newID() string {
	b.serial++
	high, low := b.random.Uint64(), b.random.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, b.serial&0xffffffffffff)
}
