package records_test

import (
	"os"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// TestDirectory stores a document in a directory and lists it, without the pointer.
func TestDirectory(t *testing.T) {
	store, now := records.Directory(t.TempDir()), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ref, err := blob.Put(t.Context(), store, now, "plans", map[string]int{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.SetTime(ref.Key(), now); err != nil {
		t.Fatal(err)
	}
	if err := blob.SetLatest(t.Context(), store, ref); err != nil {
		t.Fatal(err)
	}
	archive, err := records.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := archive.List(t.Context(), "plans", now, now)
	if err != nil || len(list) != 1 || list[0].Ref != ref || !list[0].Written.Equal(now) {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := store.Get(t.Context(), "plans/none"); !fault.Is(err, fault.Missing) {
		t.Errorf("a missing file: %v", err)
	}
	if none, err := archive.List(t.Context(), "batches", now, now); err != nil || len(none) > 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

// TestReadSkipsDamagedDocuments reads documents in order, and skips one whose content was changed.
func TestReadSkipsDamagedDocuments(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store := records.Directory(dir)
	var entries []records.StoredDocument
	for i := range 20 {
		ref, err := blob.Put(t.Context(), store, now, "plans", map[string]int{"a": i})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, records.StoredDocument{Ref: ref, Written: now})
	}
	if err := os.WriteFile(dir+"/"+entries[3].Ref.Key(), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive, err := records.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	var read []int
	skipped := 0
	err = records.Read(t.Context(), archive, entries, func(_ records.StoredDocument, doc map[string]int) bool {
		read = append(read, doc["a"])
		return doc["a"] < 12
	}, func(entry records.StoredDocument, err error) {
		if skipped++; entry.Ref != entries[3].Ref || !fault.Is(err, fault.Poison) {
			t.Errorf("skipped %s: %v", entry.Ref.Key(), err)
		}
	})
	if err != nil || len(read) != 12 || read[11] != 12 || skipped != 1 {
		t.Errorf("%v, %d skipped, %v", read, skipped, err)
	}
}
