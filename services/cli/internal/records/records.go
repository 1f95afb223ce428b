// Package records finds and reads the documents that the services of a cluster keep in its bucket: the
// batches, plans, snapshots, catalogues and launch requests behind past decisions.
//
// Documents are named by their digests, so only the time of their last write orders them. S3 keeps a
// document for blob.Retention after its last write, and documents in use are written again: a document
// that was written at a time may describe an earlier one. Every document that is read is verified
// against its digest.
package records

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// DocumentArchive is the documents of one cluster.
type DocumentArchive struct {
	Store blob.Lister
	// Progress is called while many documents are read, with the number of documents so far; nil for no
	// reports.
	Progress func(doing string, done int)
}

// StoredDocument is a stored document.
type StoredDocument struct {
	Ref event.Ref
	// Written is when the document was last written.
	Written time.Time
}

// Open returns the archive of a store. It returns an error if the store cannot list its objects.
func Open(store blob.Store, progress func(doing string, done int)) (*DocumentArchive, error) {
	lister, ok := store.(blob.Lister)
	if !ok {
		return nil, fault.F("opening the documents", fault.Invalid, "the store cannot list its objects")
	}
	return &DocumentArchive{Store: lister, Progress: progress}, nil
}

// List returns the documents of a kind that were written from one time until another, both included,
// the oldest first.
func (a *DocumentArchive) List(ctx context.Context, kind string, from, until time.Time) ([]StoredDocument, error) {
	var out []StoredDocument
	seen := 0
	for object, err := range a.Store.List(ctx, kind+"/") {
		if err != nil {
			return nil, fmt.Errorf("listing the %s: %w", kind, err)
		}
		if seen++; seen%1000 == 0 {
			a.report("listing "+kind, seen)
		}
		ref := event.Ref{Kind: kind, Digest: event.Digest(strings.TrimPrefix(object.Key, kind+"/")), Size: object.Size}
		if !ref.Digest.IsValid() || object.LastWritten.Before(from) || object.LastWritten.After(until) {
			continue // "latest" is a pointer.
		}
		out = append(out, StoredDocument{ref, object.LastWritten})
	}
	slices.SortStableFunc(out, func(x, y StoredDocument) int { return x.Written.Compare(y.Written) })
	return out, nil
}

func (a *DocumentArchive) report(doing string, done int) {
	if a.Progress != nil {
		a.Progress(doing, done)
	}
}

// readersMax is the number of documents that are read at the same time.
const readersMax = 8

// Read reads documents and calls use for each in the order of the entries, until use returns false. A
// document that expired in the meantime or whose content does not match its name is passed to skip.
func Read[T any](ctx context.Context, a *DocumentArchive, entries []StoredDocument, use func(StoredDocument, T) bool, skip func(StoredDocument, error)) error {
	type result struct {
		doc T
		err error
	}
	for first := 0; first < len(entries); first += readersMax {
		part := entries[first:min(first+readersMax, len(entries))]
		results := make([]chan result, len(part))
		for i, entry := range part {
			results[i] = make(chan result, 1)
			go func() {
				doc, err := blob.Get[T](ctx, a.Store, entry.Ref)
				results[i] <- result{doc, err}
			}()
		}
		for i, entry := range part {
			got := <-results[i]
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("reading the %s: %w", entry.Ref.Kind, ctx.Err())
			case got.err != nil && isUnreadable(got.err):
				skip(entry, got.err)
			case got.err != nil:
				return fmt.Errorf("reading the %s: %w", entry.Ref.Kind, got.err)
			case !use(entry, got.doc):
				return nil
			}
		}
		a.report("reading "+part[0].Ref.Kind, first+len(part))
	}
	return nil
}

// isUnreadable reports whether the document is missing or damaged, so that others may still be read.
func isUnreadable(err error) bool { return fault.Is(err, fault.Retry) || fault.Is(err, fault.Poison) }
