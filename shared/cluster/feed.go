package cluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Changed is what a Feed has learned of a kind since it was last asked.
type Changed struct {
	// All says that anything may have changed: the kind was listed anew, or more
	// changed than is worth naming.
	All bool
	// Keys are the objects that came, changed or went, ordered by namespace and
	// name; empty with All.
	Keys []Key
}

// Empty reports that nothing has changed.
func (c Changed) Empty() bool { return !c.All && len(c.Keys) == 0 }

// Feed is a Cache that remembers what changed, for one reader: so that one that
// keeps what it has worked out looks again at that alone.
type Feed interface {
	Cache
	// Drain tells what changed of a kind since the last Drain, and forgets it. An
	// object that the cache showed otherwise at some time in between is named,
	// and what is named is in the cache already. The first Drain says All.
	Drain(kind Kind) Changed
}

// MaxNamed is how many changes of a kind a Feed names; of more it says All.
const MaxNamed = 16384

// Changes collects what changed of one kind. The zero value is ready, and has
// never told anything: its first Drain says All. It is safe for concurrent use.
type Changes struct {
	mu    sync.Mutex
	told  bool
	all   bool
	named map[Key]struct{}
}

// Note remembers that an object came, changed or went.
func (c *Changes) Note(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all || !c.told {
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

// Drain tells what was noted, and forgets it.
func (c *Changes) Drain() Changed {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, named := c.all || !c.told, c.named
	c.told, c.all, c.named = true, false, nil
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
