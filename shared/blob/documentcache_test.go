package blob_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestDocumentCache(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := memblob.New(memblob.Options{Now: func() time.Time { return now }})
	first, err := blob.Put(t.Context(), store, now, "notes", "first")
	if err != nil {
		t.Fatal(err)
	}
	second, err := blob.Put(t.Context(), store, now, "notes", "second")
	if err != nil {
		t.Fatal(err)
	}
	var kept blob.DocumentCache[string]
	for range 2 {
		if got, err := kept.Get(t.Context(), store, first); err != nil || got != "first" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	store.RemoveKey(first.Key())
	if got, err := kept.Get(t.Context(), store, first); err != nil || got != "first" {
		t.Errorf("a cached document was read again: %q, %v", got, err)
	}
	if got, err := kept.Get(t.Context(), store, second); err != nil || got != "second" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := kept.Get(t.Context(), store, first); !fault.Is(err, fault.Retry) {
		t.Errorf("the first document is still cached: %v", err)
	}
	var none *blob.DocumentCache[string]
	if got, err := none.Get(t.Context(), store, second); err != nil || got != "second" {
		t.Errorf("empty cache: %q, %v", got, err)
	}
}
