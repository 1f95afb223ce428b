// Package blob is Joist's word for S3: objects named by the SHA-256 of their
// bytes, and one mutable pointer.
//
// Large bodies travel as references (event.Ref) to zstd-compressed JSON
// documents. A document is verified against its digest on every read, so a
// reference in a message is as good as the document itself; writing the same
// document twice is one object. Nothing that is alive expires: Put writes an
// object anew when it is older than half its retention.
package blob

import (
	"context"
	"time"
)

// Retention is how long the bucket keeps an object after its last write.
const Retention = 30 * 24 * time.Hour

// MaxObject is the largest object accepted, in bytes, compressed.
const MaxObject = 64 << 20

// Store keeps bytes under keys. Keys are slash-separated and start with the
// kind of document ("batches/…", "plans/…").
type Store interface {
	// Put writes the object.
	Put(ctx context.Context, key string, data []byte) error
	// Get reads the object; fault.Missing when there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// LastWritten says when the object was last written; fault.Missing when there is
	// none.
	LastWritten(ctx context.Context, key string) (time.Time, error)
}
