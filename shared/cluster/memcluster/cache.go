package memcluster

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// CacheOptions shape a Cache.
type CacheOptions struct {
	// Delay is how long a change of each kind takes to arrive; absent is at once.
	Delay map[cluster.Kind]time.Duration
	// Jitter is added to each change's delay, from nothing to this much. A
	// stream keeps its order all the same.
	Jitter time.Duration
	// Kinds are what the cache watches; nil is all of them.
	Kinds []cluster.Kind
	// Trim takes off objects what the process never reads. A service's cache needs the
	// Trim that the service has in production.
	Trim cluster.Trims
}

// Cache is what one process has learned by watching. It implements
// cluster.Feed, and learns only in Advance.
type Cache struct {
	server *Server

	mu      sync.Mutex
	random  *rand.Rand
	jitter  time.Duration
	kinds   []cluster.Kind
	streams map[cluster.Kind]*stream
}

var _ cluster.Feed = (*Cache)(nil)

// NewCache opens a cache. Each kind's first list is on its way from now on.
func (s *Server) NewCache(o CacheOptions) *Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateBudgets()
	if o.Kinds == nil {
		o.Kinds = cluster.Kinds
	}
	s.cacheCount++
	c := &Cache{
		server: s, jitter: o.Jitter, kinds: slices.Clone(o.Kinds),
		random:  rand.New(rand.NewPCG(uint64(s.seed), 1+s.cacheCount)),
		streams: map[cluster.Kind]*stream{},
	}
	for _, kind := range o.Kinds {
		c.streams[kind] = newStream(kind, o)
		c.streams[kind].push(s.newListing(kind), c.drawJitter())
	}
	s.caches = append(s.caches, c)
	return c
}

// Close stops the watches: nothing new arrives from now on.
func (c *Cache) Close() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caches = slices.DeleteFunc(s.caches, func(other *Cache) bool { return other == c })
}

// Break ends a kind's watch. What was on its way is lost; a new list is on its
// way instead, so what happened in between is seen as one step or not at all.
func (c *Cache) Break(kind cluster.Kind) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		stream.queue = nil
		stream.push(c.server.newListing(kind), c.drawJitter())
	}
}

// Lag sets how long a kind's changes take, those on their way included.
func (c *Cache) Lag(kind cluster.Kind, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		stream.delay = delay
	}
}

// Advance delivers what is due and reports how many changes that were.
func (c *Cache) Advance(now time.Time) int {
	c.updateBudgets()
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for _, kind := range c.kinds {
		done += c.streams[kind].advance(now)
	}
	return done
}

// Flush delivers everything, however late it is, and reports how many changes
// that were.
func (c *Cache) Flush() int {
	c.updateBudgets()
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for _, kind := range c.kinds {
		done += c.streams[kind].flush()
	}
	return done
}

// Next is when the next change is due; zero when nothing is on its way.
func (c *Cache) Next() time.Time {
	c.updateBudgets()
	c.mu.Lock()
	defer c.mu.Unlock()
	var next time.Time
	for _, kind := range c.kinds {
		if due, ok := c.streams[kind].due(); ok && (next.IsZero() || due.Before(next)) {
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

// Drain implements cluster.Feed. Of a kind that is not watched nothing changes.
func (c *Cache) Drain(kind cluster.Kind) cluster.Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream, ok := c.streams[kind]; ok {
		return stream.store.Drain()
	}
	return cluster.Changed{}
}

// Synced implements cluster.Cache.
func (c *Cache) Synced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range c.streams {
		if !stream.store.Synced() {
			return false
		}
	}
	return true
}

// Mutated lists what a caller changed in the cache's own objects, which is a
// defect of the caller.
func (c *Cache) Mutated() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, kind := range c.kinds {
		for _, key := range c.streams[kind].mutated() {
			out = append(out, kind.Kind+" "+key.String())
		}
	}
	return out
}

// updateBudgets lets the budgets' controller speak before anybody listens.
func (c *Cache) updateBudgets() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.updateBudgets()
}

// enqueue puts a change on its way. The server's lock is held.
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

// newListing is a list of a kind as a watch begins with one.
func (s *Server) newListing(kind cluster.Kind) change {
	return change{at: s.now(), list: maps.Clone(s.objects[kind])}
}
