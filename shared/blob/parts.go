package blob

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Composed is a document whose parts are stored as documents of their own, because most of them are the same in the next
// document.
type Composed interface {
	// PartRefs returns the references of the parts; none if the document is complete.
	PartRefs() ([]event.Ref, error)
	// NewPart returns a pointer to decode a part into. Parts with the same shared values, of NewShared, may share memory;
	// nil shares nothing. Parts are decoded concurrently.
	NewPart(shared any) any
	NewShared() any
	// Join completes the document with its decoded parts, in the order of PartRefs.
	Join(parts []any) error
}

// PartCache keeps the parts of the last document that was read with it, decoded. Callers share them and must not modify
// them. A nil PartCache keeps nothing.
type PartCache struct {
	// Parallel is how many parts are read at the same time. Zero means one, and the caller's goroutine reads them.
	Parallel int
	// Verify makes each read fail if a cached part was modified, for tests.
	Verify bool

	mu     sync.Mutex
	parts  map[event.Ref]any
	shared any
	// decoded is how many parts were decoded with shared.
	decoded int
}

// maxParts is the maximum size of all parts of a document in bytes, compressed.
const maxParts = MaxDocument

// Parallel is how many documents the services read or write at the same time.
const Parallel = 16

// joinParts reads the parts of a document that are not in the cache, and completes the document. Other documents are
// complete.
func joinParts(ctx context.Context, store Store, cache *PartCache, doc any) error {
	whole, ok := doc.(Composed)
	if !ok {
		return nil
	}
	refs, err := whole.PartRefs()
	if err != nil {
		return err
	}
	size := 0
	for _, ref := range refs {
		if size += ref.Size; ref.Size < 0 || size > maxParts {
			return fault.F("reading the parts of a document", fault.Poison, "the parts exceed the limit of %d bytes", maxParts)
		}
	}
	parts := cache.find(refs)
	if err := cache.verify(refs, parts); err != nil {
		return err
	}
	shared := cache.findShared(whole, parts)
	err = CallAll(ctx, len(refs), cache.parallel(), func(ctx context.Context, i int) error {
		if parts[i] != nil {
			return nil
		}
		parts[i] = whole.NewPart(shared)
		return getInto(ctx, store, refs[i], parts[i])
	})
	if err != nil {
		return fmt.Errorf("reading the parts of a document: %w", err)
	}
	cache.replace(refs, parts)
	return whole.Join(parts)
}

// parallel returns how many parts are read at the same time.
func (c *PartCache) parallel() int {
	if c == nil {
		return Parallel
	}
	return c.Parallel
}

// CallAll calls call for each index below count, up to parallel at the same time, and returns the first error. If parallel is
// at most one, it calls from its own goroutine.
func CallAll(ctx context.Context, count, parallel int, call func(ctx context.Context, i int) error) error {
	if parallel <= 1 || count <= 1 {
		for i := range count {
			if err := call(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range count {
		group.Go(func() error { return call(within, i) })
	}
	return group.Wait()
}

// find returns the cached parts; nil for each that is not cached.
func (c *PartCache) find(refs []event.Ref) []any {
	out := make([]any, len(refs))
	if c == nil {
		return out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, ref := range refs {
		out[i] = c.parts[ref]
	}
	return out
}

// verify returns an error if a part has changed since it was read.
func (c *PartCache) verify(refs []event.Ref, parts []any) error {
	if c == nil || !c.Verify {
		return nil
	}
	for i, part := range parts {
		if part == nil {
			continue
		}
		if now, _, err := Encode(refs[i].Kind, part); err != nil || now != refs[i] {
			return fault.F("reading the parts of a document", fault.Bug, "the cached part %s was modified (%v)", refs[i].Key(), err)
		}
	}
	return nil
}

// findShared returns the shared values for the parts that have to be decoded. After twice as many parts as a document has, it
// begins with new ones, because old ones also hold values that no part uses any more.
func (c *PartCache) findShared(whole Composed, parts []any) any {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared == nil || c.decoded > 2*len(parts) {
		c.shared, c.decoded = whole.NewShared(), 0
	}
	for _, part := range parts {
		if part == nil {
			c.decoded++
		}
	}
	return c.shared
}

// replace keeps these parts and forgets all others.
func (c *PartCache) replace(refs []event.Ref, parts []any) {
	if c == nil {
		return
	}
	kept := make(map[event.Ref]any, len(refs))
	for i, ref := range refs {
		kept[ref] = parts[i]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts = kept
}
