package recall

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// sold is how long a type that was for sale is taken to be.
const sold = 30 * time.Minute

// Sells reports whether the region sells an offering.
type Sells func(event.Offering) bool

// Types remembers which offerings are sold. A nil Types remembers nothing.
type Types struct {
	now func() time.Time

	mu    sync.Mutex
	known Sells
	until time.Time
}

// NewTypes remembers nothing yet.
func NewTypes(now func() time.Time) *Types { return &Types{now: now} }

// Missing are those of the offerings that are not sold, according to read. It reads
// again where what it remembers is old, or lacks one: that an offering is not sold is
// never remembered. A read without a result says nothing of any offering.
func (t *Types) Missing(ctx context.Context, offerings []event.Offering, read func(context.Context) (Sells, error)) ([]event.Offering, error) {
	if len(offerings) == 0 {
		return nil, nil
	}
	if known := t.remembered(); known != nil && len(without(offerings, known)) == 0 {
		return nil, nil
	}
	known, err := read(ctx)
	if err != nil || known == nil {
		return nil, err
	}
	t.remember(known)
	return without(offerings, known), nil
}

func (t *Types) remembered() Sells {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.now().Before(t.until) {
		return nil
	}
	return t.known
}

func (t *Types) remember(known Sells) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.until = known, t.now().Add(sold)
}

func without(offerings []event.Offering, known Sells) []event.Offering {
	return slices.DeleteFunc(slices.Clone(offerings), known)
}
