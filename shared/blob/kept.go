package blob

import (
	"context"
	"sync"

	"github.com/joist-autoscaler/joist/shared/event"
)

// DocumentCache remembers the last document of a kind that it read, by digest. A document
// is what its digest says for good, so remembering one can save work and never
// change an answer. What it gives is shared: read it, do not change it. A nil
// DocumentCache reads each time.
type DocumentCache[T any] struct {
	mu  sync.Mutex
	ref event.Ref
	doc T
}

// Get is blob.Get, or the document that is remembered.
func (k *DocumentCache[T]) Get(ctx context.Context, store Store, ref event.Ref) (T, error) {
	if k == nil {
		return Get[T](ctx, store, ref)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !ref.IsZero() && k.ref == ref {
		return k.doc, nil
	}
	doc, err := Get[T](ctx, store, ref)
	if err == nil {
		k.ref, k.doc = ref, doc
	}
	return doc, err
}
