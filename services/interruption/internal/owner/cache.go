package owner

import (
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// CacheSize is how many instances a book remembers; about 3 MB.
const CacheSize = 10_000

// Ownership is whose an instance is.
type Ownership int

// The answers.
const (
	// Unknown is what nobody has asked.
	Unknown Ownership = iota
	// Owned carries the cluster's tags.
	Owned
	// Foreign is somebody else's.
	Foreign
	// NotFound is what EC2 does not show, or shows ended and without tags, so that
	// whose it was cannot be told.
	NotFound
	// Untagged is what EC2 shows without any tags and not ended: its tags may be late.
	Untagged
)

// mayChange reports whether a later answer of EC2 may be another.
func (a Ownership) mayChange() bool { return a == NotFound || a == Untagged }

// Instance is what is to be said of one of ours.
type Instance struct {
	ID       string
	Offering event.Offering
	State    cloud.State
}

// entry is what is remembered of an instance.
type entry struct {
	ownership Ownership
	// instance is set for one of ours.
	instance Instance
	// expires is when the entry ends; the zero time is never.
	expires time.Time
}

// cache is the memory. The zero value is empty and ready; who looks or notes holds
// its lock.
type cache struct {
	sync.Mutex
	entries map[string]*entry
	// order is the ids in the order in which they came; next is the oldest once
	// the line is full.
	order []string
	next  int
}

// lookUp puts what is remembered of ids at a time into answers, nil for what is not.
func (b *cache) lookUp(ids []string, answers []*entry, now time.Time) {
	for i, id := range ids {
		e := b.entries[id]
		if e != nil && !e.expires.IsZero() && !now.Before(e.expires) {
			e = nil
		}
		answers[i] = e
	}
}

// store remembers. An entry does not change once it is noted.
func (b *cache) store(id string, e *entry) {
	if _, known := b.entries[id]; known {
		b.entries[id] = e
		return
	}
	if b.entries == nil {
		// All of its room at once: growing would cost more than what it grows for.
		b.entries, b.order = make(map[string]*entry, CacheSize), make([]string, 0, CacheSize)
	}
	b.entries[id] = e
	if len(b.order) < CacheSize {
		b.order = append(b.order, id)
		return
	}
	delete(b.entries, b.order[b.next])
	b.order[b.next] = id
	b.next = (b.next + 1) % CacheSize
}
