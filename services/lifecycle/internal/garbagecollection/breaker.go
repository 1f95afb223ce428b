package garbagecollection

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Window is the time over which a Breaker adds up.
const Window = 10 * time.Minute

// Breaker bounds how many instances are ended, or taken for ended, because of what
// messages say, over many messages: a sender that is not to be trusted may send any
// number of them. The zero value is ready. It is safe for concurrent use; a process
// that starts anew begins at nought.
type Breaker struct {
	mu    sync.Mutex
	taken map[string]time.Time
}

// MaxRemovals is how many nodes of a cluster of that size may go at once.
func MaxRemovals(size int) int { return max(3, size/10) }

// TakeRemoval adds instances, each once. If they would be more than three and more than a
// tenth of the cluster's size within the Window, it adds none and returns fault.Denied.
func (b *Breaker) TakeRemoval(ids []string, size int, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(now)
	fresh := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, known := b.taken[id]; return known })
	slices.Sort(fresh)
	fresh = slices.Compact(fresh)
	if n := len(b.taken) + len(fresh); len(fresh) > 0 && n > MaxRemovals(size) {
		return fault.F("ending instances on the word of a message", fault.Denied, "%d of %d within %s are more than %d: %s",
			n, size, Window, MaxRemovals(size), strings.Join(fresh, " ")).
			WithHint("find out who sent this message; EC2's own inventories go on")
	}
	for _, id := range fresh {
		b.taken[id] = now
	}
	return nil
}

// forget drops what was taken before the Window.
func (b *Breaker) forget(now time.Time) {
	if b.taken == nil {
		b.taken = map[string]time.Time{}
	}
	for id, at := range b.taken {
		if now.Sub(at) >= Window {
			delete(b.taken, id)
		}
	}
}
