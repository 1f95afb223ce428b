package cache

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// offeringTTL is how long an offering stays in the cache.
const offeringTTL = 30 * time.Minute

// IsOffered reports whether the catalogue has an offering.
type IsOffered func(event.Offering) bool

// Offerings caches which offerings the catalogue has. A nil Offerings caches nothing.
type Offerings struct {
	now func() time.Time

	mu        sync.Mutex
	isOffered IsOffered
	until     time.Time
}

// NewOfferings returns an empty cache.
func NewOfferings(now func() time.Time) *Offerings { return &Offerings{now: now} }

// FindMissing returns the offerings that the catalogue lacks. It calls read if the cache is
// expired or lacks an offering, so a missing offering is never cached. It returns nil if
// read returns nil.
func (t *Offerings) FindMissing(ctx context.Context, offerings []event.Offering, read func(context.Context) (IsOffered, error)) ([]event.Offering, error) {
	if len(offerings) == 0 {
		return nil, nil
	}
	if cached := t.loadFresh(); cached != nil && len(removeOffered(offerings, cached)) == 0 {
		return nil, nil
	}
	isOffered, err := read(ctx)
	if err != nil || isOffered == nil {
		return nil, err
	}
	t.store(isOffered)
	return removeOffered(offerings, isOffered), nil
}

func (t *Offerings) loadFresh() IsOffered {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.now().Before(t.until) {
		return nil
	}
	return t.isOffered
}

func (t *Offerings) store(isOffered IsOffered) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isOffered, t.until = isOffered, t.now().Add(offeringTTL)
}

func removeOffered(offerings []event.Offering, isOffered IsOffered) []event.Offering {
	return slices.DeleteFunc(slices.Clone(offerings), isOffered)
}
