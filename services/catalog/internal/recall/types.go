package recall

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sold is how long a type that was for sale is taken to be (B162).
const sold = 30 * time.Minute

// Types remembers which instance types are sold. A nil Types remembers nothing.
type Types struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]bool
	until time.Time
}

// NewTypes remembers nothing yet.
func NewTypes(now func() time.Time) *Types { return &Types{now: now} }

// Missing are those of the types that read does not know. It reads again where what
// it remembers is old, or lacks one: that a type is not sold is never remembered. A
// read that finds nothing at all says nothing of any type.
func (t *Types) Missing(ctx context.Context, types []string, read func(context.Context) (map[string]bool, error)) ([]string, error) {
	if len(types) == 0 || len(without(types, t.remembered())) == 0 {
		return nil, nil
	}
	known, err := read(ctx)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	t.remember(known)
	return without(types, known), nil
}

func (t *Types) remembered() map[string]bool {
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

func (t *Types) remember(known map[string]bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.until = known, t.now().Add(sold)
}

func without(types []string, known map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(types), func(name string) bool { return known[name] })
}
