package owner

import (
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Size is how many instances a book remembers; about 3 MB.
const Size = 10_000

// Answer is whose an instance is.
type Answer int

// The answers.
const (
	// Unknown is what nobody has asked.
	Unknown Answer = iota
	// Ours carries the cluster's tags.
	Ours
	// Strange is somebody else's.
	Strange
	// Unseen is what EC2 does not show, or shows ended and without tags, so that
	// whose it was cannot be told.
	Unseen
	// Untagged is what EC2 shows without any tags and not ended: its tags may be late.
	Untagged
)

// open reports whether a later answer of EC2 may be another.
func (a Answer) open() bool { return a == Unseen || a == Untagged }

// Instance is what is to be said of one of ours.
type Instance struct {
	ID       string
	Offering event.Offering
	State    cloud.State
}

// entry is what is remembered of an instance.
type entry struct {
	answer Answer
	// instance is set for one of ours.
	instance Instance
	// until is when the entry ends; the zero time is never.
	until time.Time
}

// book is the memory. The zero value is empty and ready; who looks or notes holds
// its lock.
type book struct {
	sync.Mutex
	entries map[string]*entry
	// line is the ids in the order in which they came; next is the oldest once
	// the line is full.
	line []string
	next int
}

// look puts what is remembered of ids at a time into answers, nil for what is not.
func (b *book) look(ids []string, answers []*entry, now time.Time) {
	for i, id := range ids {
		e := b.entries[id]
		if e != nil && !e.until.IsZero() && !now.Before(e.until) {
			e = nil
		}
		answers[i] = e
	}
}

// note remembers. An entry does not change once it is noted.
func (b *book) note(id string, e *entry) {
	if _, known := b.entries[id]; known {
		b.entries[id] = e
		return
	}
	if b.entries == nil {
		// All of its room at once: growing would cost more than what it grows for.
		b.entries, b.line = make(map[string]*entry, Size), make([]string, 0, Size)
	}
	b.entries[id] = e
	if len(b.line) < Size {
		b.line = append(b.line, id)
		return
	}
	delete(b.entries, b.line[b.next])
	b.line[b.next] = id
	b.next = (b.next + 1) % Size
}
