package blobtest

import (
	"context"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Bucket is a store in memory whose clock a test sets.
type Bucket struct {
	*memblob.Store
	Now time.Time
}

// NewBucket returns an empty bucket at that time.
func NewBucket(now time.Time) *Bucket {
	b := &Bucket{Now: now}
	b.Store = memblob.New(memblob.Options{Now: func() time.Time { return b.Now }})
	return b
}

// SizeLimited is a store that rejects objects of more than MaxSize bytes whose key begins with Prefix, with blob.ErrTooLarge.
type SizeLimited struct {
	blob.Store
	Prefix  string
	MaxSize int
}

// Put implements blob.Store.
func (s SizeLimited) Put(ctx context.Context, key string, data []byte) error {
	if strings.HasPrefix(key, s.Prefix) && len(data) > s.MaxSize {
		return fault.E("storing "+key, fault.Bug, blob.ErrTooLarge)
	}
	return s.Store.Put(ctx, key, data)
}
