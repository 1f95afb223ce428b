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
	// Values are the values that these objects have or had in the kind's Indexes, in order, such as
	// the nodes of changed pods; "" is left out. They are empty if All is true.
	Values []string
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
	values  map[string]struct{}
}

// RecordChange records that an object was added, changed or removed, with its values in the kind's Indexes
// before and after.
func (c *Changes) RecordChange(key Key, values ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all || !c.drained {
		return
	}
	if len(c.named) == MaxNamed {
		c.all, c.named, c.values = true, nil, nil
		return
	}
	if c.named == nil {
		c.named, c.values = map[Key]struct{}{}, map[string]struct{}{}
	}
	c.named[key] = struct{}{}
	for _, value := range values {
		if value != "" {
			c.values[value] = struct{}{}
		}
	}
}

// TakeChanges returns the recorded changes and clears them.
func (c *Changes) TakeChanges() Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, named, values := c.all || !c.drained, c.named, c.values
	c.drained, c.all, c.named, c.values = true, false, nil, nil
	if all {
		return Changed{All: true}
	}
	return Changed{Keys: slices.SortedFunc(maps.Keys(named), Key.Compare), Values: slices.Sorted(maps.Keys(values))}
}

// Compare orders keys by namespace and name.
func (k Key) Compare(other Key) int {
	if by := cmp.Compare(k.Namespace, other.Namespace); by != 0 {
		return by
	}
	return cmp.Compare(k.Name, other.Name)
}
