// Package blob is Joist's interface to S3: objects named by the SHA-256 of their bytes, and one mutable pointer per
// kind.
//
// Messages refer to large bodies (event.Ref), which are zstd-compressed JSON documents. Every read verifies a
// document against its digest, so a reference fixes the content; writing the same document twice gives one object.
// Documents in use do not expire: Put writes an object again if it is older than half its retention.
package blob

import (
	"context"
	"iter"
	"time"
)

// Retention is how long the bucket keeps an object after its last write.
const Retention = 30 * 24 * time.Hour

// MaxObject is the maximum size of a compressed object in bytes.
const MaxObject = 64 << 20

// Store stores bytes under keys. Keys are slash-separated and begin with the kind of document ("batches/…",
// "plans/…").
type Store interface {
	// Put writes the object.
	Put(ctx context.Context, key string, data []byte) error
	// Get reads the object; fault.Missing if it does not exist.
	Get(ctx context.Context, key string) ([]byte, error)
	// LastWritten returns when the object was last written; fault.Missing if it does not exist.
	LastWritten(ctx context.Context, key string) (time.Time, error)
}

// StoredObject is one object of a store, without its content.
type StoredObject struct {
	Key string
	// Size is the number of stored bytes.
	Size int
	// LastWritten is when the object was last written. A document in use is written again after half its retention.
	LastWritten time.Time
}

// Lister is a store that can list its objects. The services do not need it; `joist explain` finds the documents of a
// past decision with it.
type Lister interface {
	Store
	// List yields the objects whose keys begin with prefix, sorted by key. It ends after an error.
	List(ctx context.Context, prefix string) iter.Seq2[StoredObject, error]
}
