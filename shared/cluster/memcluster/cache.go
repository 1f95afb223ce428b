package memcluster

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// CacheOptions configure a Cache.
type CacheOptions struct {
	// Delay is how long a change of each kind takes to arrive; 0 by default.
	Delay map[cluster.Kind]time.Duration
	// Jitter is the largest random addition to a change's delay. The changes of a kind
	// keep their order.
	Jitter time.Duration
	// Kinds are the watched kinds; nil means all.
	Kinds []cluster.Kind
	// Trim clears fields that the process never reads. Use the Trim that the service has
	// in production.
	Trim cluster.Trims
	// Uncopied gives the cache the server's own objects, which saves a copy of each. The
	// callers must never change an object, and no kind may be trimmed.
	Uncopied bool
	// FindMutated keeps a second copy of each object for ListMutated.
	FindMutated bool
}

// Cache is the cache of one process. It implements cluster.Feed, and receives changes only
// in Advance.
type Cache struct {
	server *Server

	mu      sync.Mutex
	random  *rand.Rand
	jitter  time.Duration
	streams map[cluster.Kind]*stream
	ordered []*stream // the same in the order of CacheOptions.Kinds
}

var _ cluster.Feed = (*Cache)(nil)

// NewCache returns a cache. The first list of each kind arrives after its delay.
func (s *Server) NewCache(o CacheOptions) *Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateBudgets()
	if o.Kinds == nil {
		o.Kinds = cluster.Kinds
	}
	if o.Uncopied && len(o.Trim) > 0 {
		panic("memcluster: an uncopied cache would trim the server's objects")
	}
	s.cacheCount++
	c := &Cache{
		server: s, jitter: o.Jitter,
		random:  rand.New(rand.NewPCG(uint64(s.seed), 1+s.cacheCount)),
		streams: map[cluster.Kind]*stream{},
	}
	for _, kind := range o.Kinds {
		stream := newStream(kind, o)
		stream.push(s.newListing(kind), c.drawJitter())
		c.streams[kind] = stream
		c.ordered = append(c.ordered, stream)
	}
	s.caches = append(s.caches, c)
	return c
}

// Close stops the watches. No more changes arrive.
func (c *Cache) Close() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caches = slices.DeleteFunc(s.caches, func(other *Cache) bool { return other == c })
}

// BreakWatch ends the watch of a kind. Changes in transit are lost, and a new list arrives
// instead, so that several changes of an object are seen as one.
func (c *Cache) BreakWatch(kind cluster.Kind) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		stream.queue = nil
		stream.push(c.server.newListing(kind), c.drawJitter())
	}
}

// SetDelay sets how long changes of a kind take to arrive, also of changes in transit.
func (c *Cache) SetDelay(kind cluster.Kind, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		stream.delay = delay
	}
}

// Advance delivers the changes that are due and returns their number.
func (c *Cache) Advance(now time.Time) int {
	c.updateBudgets()
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for _, stream := range c.ordered {
		done += stream.advance(now)
	}
	return done
}

// DeliverAll delivers all changes in transit and returns their number.
func (c *Cache) DeliverAll() int {
	c.updateBudgets()
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for _, stream := range c.ordered {
		done += stream.flush()
	}
	return done
}

// NextDelivery is when the next change is due; zero if no change is in transit.
func (c *Cache) NextDelivery() time.Time {
	c.updateBudgets()
	c.mu.Lock()
	defer c.mu.Unlock()
	var next time.Time
	for _, stream := range c.ordered {
		if due, ok := stream.due(); ok && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// List implements cluster.Cache.
func (c *Cache) List(kind cluster.Kind) []cluster.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		return stream.store.List()
	}
	return nil
}

// ListBy implements cluster.Cache.
func (c *Cache) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		return stream.store.ListBy(index, value)
	}
	return nil
}

// Get implements cluster.Cache.
func (c *Cache) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		return stream.store.Get(key)
	}
	return nil, false
}

// TakeChanges implements cluster.Feed. A kind that is not watched has no changes.
func (c *Cache) TakeChanges(kind cluster.Kind) cluster.Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		return stream.store.TakeChanges()
	}
	return cluster.Changed{}
}

// Synced implements cluster.Cache.
func (c *Cache) Synced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range c.ordered {
		if !stream.store.Synced() {
			return false
		}
	}
	return true
}

// ListMutated lists the cached objects that callers have changed. Callers must copy objects
// before they change them. The cache must have been opened with FindMutated.
func (c *Cache) ListMutated() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, stream := range c.ordered {
		if stream.asGiven == nil {
			panic("memcluster: ListMutated of a cache without FindMutated")
		}
		for _, key := range stream.mutated() {
			out = append(out, stream.kind.Kind+" "+key.String())
		}
	}
	return out
}

// updateBudgets computes the status of budgets before changes are delivered.
func (c *Cache) updateBudgets() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.updateBudgets()
}

// enqueue puts a change in transit. The caller holds the server's lock.
func (c *Cache) enqueue(kind cluster.Kind, n change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		stream.push(n, c.drawJitter())
	}
}

func (c *Cache) drawJitter() time.Duration {
	if c.jitter <= 0 {
		return 0
	}
	return time.Duration(c.random.Int64N(int64(c.jitter) + 1))
}

// newListing returns the list of a kind with which a watch begins.
func (s *Server) newListing(kind cluster.Kind) change {
	return change{at: s.now(), list: maps.Clone(s.objects[kind])}
}
