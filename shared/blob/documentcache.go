package blob

import (
	"context"
	"sync"

	"github.com/joist-autoscaler/joist/shared/event"
)

// DocumentCache caches the last document of a kind by digest. The digest determines the content, so the cache is
// never outdated. Callers share the document and must not modify it. A nil DocumentCache reads the document each
// time.
type DocumentCache[T any] struct {
	mu  sync.Mutex
	ref event.Ref
	doc T
}

// Get returns the cached document, or the result of blob.Get.
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
