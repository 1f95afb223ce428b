package owner

import (
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// CacheSize is the maximum number of cached instances; about 3 MB.
const CacheSize = 10_000

// Ownership is the relation of an instance to the cluster.
type Ownership int

// The kinds of ownership.
const (
	// Unknown instances are not cached.
	Unknown Ownership = iota
	// Owned instances have the cluster's tags.
	Owned
	// Foreign instances have other tags.
	Foreign
	// NotFound instances are not returned by EC2, or are terminated and without tags, so
	// that their owner cannot be known.
	NotFound
	// Untagged instances exist and have no tags yet.
	Untagged
)

// mayChange reports whether a later answer of EC2 may differ.
func (o Ownership) mayChange() bool { return o == NotFound || o == Untagged }

// Instance has the cached properties of an owned instance.
type Instance struct {
	ID       string
	Offering event.Offering
	State    cloud.State
}

// entry is the cache entry of an instance. It is immutable once it is stored.
type entry struct {
	ownership Ownership
	// instance is set if the instance is owned.
	instance Instance
	// expires is zero if the entry does not expire.
	expires time.Time
}

// cache has the most recent entries. The zero value is empty and ready. Callers of lookUp
// and store must hold the lock.
type cache struct {
	sync.Mutex
	entries map[string]*entry
	// order is a ring of the ids in the order of insertion; next is the oldest once the ring is
	// full. The list of an LRU library would cost an allocation and twice the time for each new
	// instance, and a storm of notices is about new instances.
	order []string
	next  int
}

// lookUp sets entries to the cached ones of ids, nil for ids that are not cached or have
// expired.
func (c *cache) lookUp(ids []string, entries []*entry, now time.Time) {
	for i, id := range ids {
		e := c.entries[id]
		if e != nil && !e.expires.IsZero() && !now.Before(e.expires) {
			e = nil
		}
		entries[i] = e
	}
}

// store adds or replaces an entry and evicts the oldest one if the cache is full.
func (c *cache) store(id string, e *entry) {
	if _, exists := c.entries[id]; exists {
		c.entries[id] = e
		return
	}
	if c.entries == nil {
		// Growing the map would cost more than its full size.
		c.entries, c.order = make(map[string]*entry, CacheSize), make([]string, 0, CacheSize)
	}
	c.entries[id] = e
	if len(c.order) < CacheSize {
		c.order = append(c.order, id)
		return
	}
	delete(c.entries, c.order[c.next])
	c.order[c.next] = id
	c.next = (c.next + 1) % CacheSize
}
