// Package blobtest is the conformance suite of blob.Store: the behaviour of every implementation, be it the model,
// the S3 adapter over loopback, or S3 itself.
//
// Each behaviour gets its own Subject with an empty store.
package blobtest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Subject is one store under test.
type Subject struct {
	Store blob.Store
	// Now is the store's clock, and Advance lets time pass on it.
	Now     func() time.Time
	Advance func(time.Duration)
}

// Run tests that the subjects behave as a store.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	for _, b := range []struct {
		name  string
		check func(*testing.T, Subject)
	}{
		{"reads written objects", readsWritten},
		{"reports missing objects", reportsMissing},
		{"overwrites", overwrites},
		{"keeps every byte", keepsBytes},
		{"keeps keys separate", keepsKeysApart},
		{"reports the time of the write", reportsWriteTime},
		{"shares no memory", sharesNoMemory},
		{"stores large objects", storesLarge},
		{"rejects objects beyond the limit", rejectsTooLarge},
		{"allows concurrent writers", allowsConcurrentWriters},
		{"stores documents", storesDocuments},
		{"refreshes old documents", refreshesDocuments},
		{"points to the latest", pointsToLatest},
		{"lists objects by prefix", listsObjects},
	} {
		t.Run(b.name, func(t *testing.T) { b.check(t, subject(t)) })
	}
}

func put(t *testing.T, s Subject, key string, data []byte) {
	t.Helper()
	if err := s.Store.Put(t.Context(), key, data); err != nil {
		t.Fatalf("writing %s: %v", key, err)
	}
}

func wantData(t *testing.T, s Subject, key string, want []byte) {
	t.Helper()
	got, err := s.Store.Get(t.Context(), key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes %.40q, %v; want %d bytes %.40q", key, len(got), got, err, len(want), want)
	}
}

func readsWritten(t *testing.T, s Subject) {
	put(t, s, "plans/a", []byte("one"))
	wantData(t, s, "plans/a", []byte("one"))
	wantData(t, s, "plans/a", []byte("one"))
}

func reportsMissing(t *testing.T, s Subject) {
	put(t, s, "plans/ab", []byte("one"))
	for _, key := range []string{"plans/a", "plans", "plans/ab/c"} {
		if data, err := s.Store.Get(t.Context(), key); !fault.Is(err, fault.Missing) {
			t.Errorf("reading %s gave %q, %v", key, data, err)
		}
		if at, err := s.Store.LastWritten(t.Context(), key); !fault.Is(err, fault.Missing) {
			t.Errorf("LastWritten of %s = %s, %v", key, at, err)
		}
	}
}

func overwrites(t *testing.T, s Subject) {
	put(t, s, "plans/a", []byte("a long first version"))
	put(t, s, "plans/a", []byte("two"))
	wantData(t, s, "plans/a", []byte("two"))
}

func keepsBytes(t *testing.T, s Subject) {
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	for name, data := range map[string][]byte{"all": all, "nothing": {}, "lines": []byte("a\r\nb\n\r"), "zero": make([]byte, 1000)} {
		put(t, s, "bytes/"+name, data)
		wantData(t, s, "bytes/"+name, data)
	}
}

func keepsKeysApart(t *testing.T, s Subject) {
	keys := []string{"a", "a/b", "a/b/c", "A", "a b", "a+b", "a%20b", "a?b=c&d", "a#b", "a=b", "節点/x"}
	for _, key := range keys {
		put(t, s, key, []byte(key))
	}
	for _, key := range keys {
		wantData(t, s, key, []byte(key))
	}
}

// reportsWriteTime allows for a precision of one second and for a second of skew.
func reportsWriteTime(t *testing.T, s Subject) {
	for range 2 {
		before := s.Now().Add(-2 * time.Second)
		put(t, s, "plans/a", []byte("one"))
		after := s.Now().Add(time.Second)
		at, err := s.Store.LastWritten(t.Context(), "plans/a")
		if err != nil || at.Before(before) || at.After(after) {
			t.Errorf("written at %s, %v; want %s to %s", at, err, before, after)
		}
		s.Advance(time.Minute)
	}
}

func sharesNoMemory(t *testing.T, s Subject) {
	data := []byte("one")
	put(t, s, "plans/a", data)
	data[0] = 'X'
	got, err := s.Store.Get(t.Context(), "plans/a")
	if err != nil {
		t.Fatal(err)
	}
	got[1] = 'X'
	wantData(t, s, "plans/a", []byte("one"))
}

func storesLarge(t *testing.T, s Subject) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	put(t, s, "batches/large", data)
	wantData(t, s, "batches/large", data)
}

func rejectsTooLarge(t *testing.T, s Subject) {
	err := s.Store.Put(t.Context(), "batches/a", make([]byte, blob.MaxObject+1))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
	if _, err := s.Store.Get(t.Context(), "batches/a"); !fault.Is(err, fault.Missing) {
		t.Errorf("after a rejected write: %v", err)
	}
}

// allowsConcurrentWriters runs concurrent writers: a reader gets one complete version.
func allowsConcurrentWriters(t *testing.T, s Subject) {
	version := func(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, 1000+n) }
	put(t, s, "catalogs/latest", version(0))
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for range 5 {
				if err := s.Store.Put(t.Context(), "catalogs/latest", version(n)); err != nil {
					t.Errorf("writing: %v", err)
				}
				got, err := s.Store.Get(t.Context(), "catalogs/latest")
				if err != nil || len(got) < 1000 || !bytes.Equal(got, version(len(got)-1000)) {
					t.Errorf("read %d bytes %.20q, %v", len(got), got, err)
				}
			}
		})
	}
	group.Wait()
}

type document struct {
	Name  string
	Count map[string]int
}

func sample(n int) document {
	d := document{Name: fmt.Sprintf("batch %d", n), Count: map[string]int{}}
	for i := range 100 {
		d.Count[fmt.Sprintf("pod-%d", i)] = i * n
	}
	return d
}

func storesDocuments(t *testing.T, s Subject) {
	ref, err := blob.Put(t.Context(), s.Store, s.Now(), "batches", sample(3))
	if err != nil {
		t.Fatal(err)
	}
	got, err := blob.Get[document](t.Context(), s.Store, ref)
	if err != nil || got.Name != "batch 3" || got.Count["pod-99"] != 297 {
		t.Errorf("%+v, %v", got, err)
	}
	put(t, s, ref.Key(), []byte("something else"))
	if _, err := blob.Get[document](t.Context(), s.Store, ref); !fault.Is(err, fault.Poison) {
		t.Errorf("object with another digest: %v", err)
	}
}

func refreshesDocuments(t *testing.T, s Subject) {
	written := func() time.Time {
		ref, err := blob.Put(t.Context(), s.Store, s.Now(), "batches", sample(1))
		if err != nil {
			t.Fatal(err)
		}
		at, err := s.Store.LastWritten(t.Context(), ref.Key())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := written()
	s.Advance(blob.Retention/2 - time.Hour)
	if again := written(); !again.Equal(first) {
		t.Errorf("a young document was written again at %s", again)
	}
	s.Advance(2 * time.Hour)
	if again := written(); again.Sub(first) < blob.Retention/2 {
		t.Errorf("an old document was not written again; last write at %s", again)
	}
}

func pointsToLatest(t *testing.T, s Subject) {
	if _, err := blob.GetLatest(t.Context(), s.Store, "catalogs"); !fault.Is(err, fault.Missing) {
		t.Errorf("before the first document: %v", err)
	}
	for n := range 2 {
		ref, err := blob.Put(t.Context(), s.Store, s.Now(), "catalogs", sample(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := blob.SetLatest(t.Context(), s.Store, ref); err != nil {
			t.Fatal(err)
		}
		if got, err := blob.GetLatest(t.Context(), s.Store, "catalogs"); err != nil || got != ref {
			t.Errorf("GetLatest = %v, %v; want %v", got, err, ref)
		}
	}
}

func listsObjects(t *testing.T, s Subject) {
	lister, ok := s.Store.(blob.Lister)
	if !ok {
		t.Skip("the store does not list objects")
	}
	for _, key := range []string{"plans/b", "plans/a", "plans/c", "plans/d", "plans/e", "batches/c", "planners/d"} {
		put(t, s, key, []byte(key))
	}
	s.Advance(time.Minute)
	put(t, s, "plans/b", []byte("longer than before"))
	var keys []string
	for object, err := range lister.List(t.Context(), "plans/") {
		if err != nil {
			t.Fatal(err)
		}
		written, err := s.Store.LastWritten(t.Context(), object.Key)
		if err != nil || !written.Equal(object.LastWritten) {
			t.Errorf("%s was written at %s, %v; the list has %s", object.Key, written, err, object.LastWritten)
		}
		keys = append(keys, fmt.Sprint(object.Key, object.Size))
	}
	if got := fmt.Sprint(keys); got != "[plans/a7 plans/b18 plans/c7 plans/d7 plans/e7]" {
		t.Errorf("the list is %s", got)
	}
	for object, err := range lister.List(t.Context(), "intents/") {
		t.Errorf("the list of an empty folder has %v, %v", object, err)
	}
}
