package blob_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// book is a document with chapters as parts.
type book struct {
	Refs     []event.Ref `json:"refs,omitempty"`
	Chapters []string    `json:"chapters,omitempty"`
}

func (b *book) PartRefs() ([]event.Ref, error) { return b.Refs, nil }
func (b *book) NewPart(any) any                { return new(string) }
func (b *book) NewShared() any                 { return nil }

func (b *book) Join(parts []any) error {
	for _, part := range parts {
		b.Chapters = append(b.Chapters, *part.(*string))
	}
	b.Refs = nil
	return nil
}

// countingBucket counts the reads of each kind.
type countingBucket struct {
	*blobtest.Bucket
	mu    sync.Mutex
	reads map[string]int
}

func (b *countingBucket) Get(ctx context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind, _, _ := strings.Cut(key, "/")
	b.reads[kind]++
	return b.Bucket.Get(ctx, key)
}

// storeBook stores a book and its chapters.
func storeBook(t *testing.T, b *blobtest.Bucket, chapters ...string) (ref event.Ref, parts []event.Ref) {
	t.Helper()
	parts, err := blob.PutAll(t.Context(), b, b.Now, "chapters", chapters, 2)
	if err != nil {
		t.Fatal(err)
	}
	if ref, err = blob.Put(t.Context(), b, b.Now, "books", book{Refs: parts}); err != nil {
		t.Fatal(err)
	}
	return ref, parts
}

// TestCachedPartsAreReadOnce reads documents that share parts.
func TestCachedPartsAreReadOnce(t *testing.T) {
	for name, parallel := range map[string]int{"one after the other": 0, "at the same time": 4} {
		t.Run(name, func(t *testing.T) {
			b := &countingBucket{Bucket: blobtest.NewBucket(noon), reads: map[string]int{}}
			cache := &blob.PartCache{Parallel: parallel}
			for _, step := range []struct {
				chapters []string
				reads    int
			}{
				{[]string{"a", "b", "c"}, 3}, {[]string{"b", "d", "c"}, 4}, {[]string{"d"}, 4}, {[]string{"d", "b"}, 5}, {nil, 5}, {[]string{"d"}, 6},
			} {
				ref, _ := storeBook(t, b.Bucket, step.chapters...)
				got, err := blob.GetCached[book](t.Context(), b, ref, cache)
				if diff := cmp.Diff(book{Chapters: step.chapters}, got); err != nil || diff != "" {
					t.Fatalf("%v\n%s", err, diff)
				}
				if b.reads["chapters"] != step.reads {
					t.Errorf("after %v %d chapters were read, want %d", step.chapters, b.reads["chapters"], step.reads)
				}
			}
		})
	}
}

// sharingBook is a book that shares memory with its parts, as the documents of Joist do.
type sharingBook struct {
	Refs     []event.Ref `json:"refs,omitempty"`
	Chapters []*string   `json:"chapters,omitempty"`
}

func (b *sharingBook) PartRefs() ([]event.Ref, error) { return b.Refs, nil }
func (b *sharingBook) NewPart(any) any                { return new(string) }
func (b *sharingBook) NewShared() any                 { return nil }

func (b *sharingBook) Join(parts []any) error {
	for _, part := range parts {
		b.Chapters = append(b.Chapters, part.(*string))
	}
	return nil
}

// TestModifiedPartIsFound requires that Verify finds a caller that modifies a document.
func TestModifiedPartIsFound(t *testing.T) {
	b, cache := blobtest.NewBucket(noon), &blob.PartCache{Verify: true}
	ref, _ := storeBook(t, b, "a", "b")
	for range 2 {
		doc, err := blob.GetCached[sharingBook](t.Context(), b, ref, cache)
		if err != nil {
			t.Fatal(err)
		}
		*doc.Chapters[1] = "b"
	}
	doc, err := blob.GetCached[sharingBook](t.Context(), b, ref, cache)
	if err != nil {
		t.Fatal(err)
	}
	*doc.Chapters[1] = "c"
	if _, err := blob.GetCached[sharingBook](t.Context(), b, ref, cache); !fault.Is(err, fault.Bug) {
		t.Errorf("error %v, want a bug", err)
	}
}

// TestPartsFail requires an error of the right kind, and no document, if a part cannot be read.
func TestPartsFail(t *testing.T) {
	missing := event.Ref{Kind: "chapters", Digest: event.DigestOf([]byte("none")), Size: 1}
	for name, test := range map[string]struct {
		spoil func(parts []event.Ref) []event.Ref
		want  fault.Kind
	}{
		"missing":       {func(parts []event.Ref) []event.Ref { return append(parts, missing) }, fault.Retry},
		"wrong size":    {func(parts []event.Ref) []event.Ref { parts[1].Size++; return parts }, fault.Poison},
		"negative size": {func(parts []event.Ref) []event.Ref { parts[1].Size = -1; return parts }, fault.Poison},
		"empty":         {func(parts []event.Ref) []event.Ref { return append(parts, event.Ref{}) }, fault.Poison},
		"too much": {func(parts []event.Ref) []event.Ref {
			for range 10 {
				parts = append(parts, event.Ref{Kind: "chapters", Digest: parts[0].Digest, Size: blob.MaxObject})
			}
			return parts
		}, fault.Poison},
	} {
		t.Run(name, func(t *testing.T) {
			b := blobtest.NewBucket(noon)
			_, parts := storeBook(t, b, "a", "b")
			ref, err := blob.Put(t.Context(), b, b.Now, "books", book{Refs: test.spoil(parts)})
			if err != nil {
				t.Fatal(err)
			}
			for _, cache := range []*blob.PartCache{nil, {}, {Parallel: 3}} {
				doc, err := blob.GetCached[book](t.Context(), b, ref, cache)
				if fault.KindOf(err) != test.want || len(doc.Chapters) > 0 {
					t.Errorf("%+v, %v; want the kind %q", doc, err, test.want)
				}
			}
		})
	}
}

// TestFileWithParts requires that a copied document without its parts is not taken for a whole one.
func TestFileWithParts(t *testing.T) {
	b := blobtest.NewBucket(noon)
	ref, _ := storeBook(t, b, "a")
	data, err := b.Get(t.Context(), ref.Key())
	if err != nil {
		t.Fatal(err)
	}
	var got book
	if err := blob.DecodeFile("copy", data, &got); !errors.Is(err, blob.ErrParts) || !fault.Is(err, fault.Poison) {
		t.Errorf("error %v, want %v", err, blob.ErrParts)
	}
}
