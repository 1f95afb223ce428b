package cluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Changed has the changes of one kind since the last call of TakeChanges.
type Changed struct {
	// All is true if any object may have changed: the kind was listed again, or there
	// are more than MaxNamed changes.
	All bool
	// Keys are the objects that were added, changed or removed, ordered by namespace
	// and name; empty if All is true.
	Keys []Key
}

// Empty reports that nothing has changed.
func (c Changed) Empty() bool { return !c.All && len(c.Keys) == 0 }

// Feed is a Cache that collects changes for one reader, so that a reader which keeps
// computed values computes only changed objects again.
type Feed interface {
	Cache
	// TakeChanges returns what changed of a kind since the last call, and clears it. It names
	// every object whose state in the cache differed at any time since then. The cache
	// already shows the named changes. The first call returns All.
	TakeChanges(kind Kind) Changed
}

// MaxNamed is the largest number of keys in Changed. More changes set All.
const MaxNamed = 16384

// Changes collects the changes of one kind. The zero value is ready for use; its first
// Drain returns All. It is safe for concurrent use.
type Changes struct {
	mu      sync.Mutex
	drained bool
	all     bool
	named   map[Key]struct{}
}

// RecordChange records that an object was added, changed or removed.
func (c *Changes) RecordChange(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all || !c.drained {
		return
	}
	if len(c.named) == MaxNamed {
		c.all, c.named = true, nil
		return
	}
	if c.named == nil {
		c.named = map[Key]struct{}{}
	}
	c.named[key] = struct{}{}
}

// TakeChanges returns the recorded changes and clears them.
func (c *Changes) TakeChanges() Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, named := c.all || !c.drained, c.named
	c.drained, c.all, c.named = true, false, nil
	if all {
		return Changed{All: true}
	}
	return Changed{Keys: slices.SortedFunc(maps.Keys(named), Key.Compare)}
}

// Compare orders keys by namespace and name.
func (k Key) Compare(other Key) int {
	if by := cmp.Compare(k.Namespace, other.Namespace); by != 0 {
		return by
	}
	return cmp.Compare(k.Name, other.Name)
}
