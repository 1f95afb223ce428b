package garbagecollection

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// BreakerWindow is the time over which a Breaker counts.
const BreakerWindow = 10 * time.Minute

// Breaker limits how many instances are terminated, or treated as terminated, because of messages.
// It counts over many messages, because a compromised sender may send any number of them. The zero
// value is ready. It is safe for concurrent use. A new process starts at zero.
type Breaker struct {
	mu    sync.Mutex
	taken map[string]time.Time
}

// MaxRemovals returns how many nodes of a cluster of this size may be removed at once.
func MaxRemovals(size int) int { return max(3, size/10) }

// TakeRemoval counts instances, each once. If they would exceed three and a tenth of the
// cluster's size within BreakerWindow, it counts none and returns fault.Denied.
func (b *Breaker) TakeRemoval(ids []string, size int, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeExpired(now)
	fresh := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, known := b.taken[id]; return known })
	slices.Sort(fresh)
	fresh = slices.Compact(fresh)
	if n := len(b.taken) + len(fresh); len(fresh) > 0 && n > MaxRemovals(size) {
		return fault.F("terminating instances because of a message", fault.Denied, "%d of %d within %s are more than %d: %s",
			n, size, BreakerWindow, MaxRemovals(size), strings.Join(fresh, " ")).
			WithHint("find the sender of this message; inventories of EC2 are still handled")
	}
	for _, id := range fresh {
		b.taken[id] = now
	}
	return nil
}

// removeExpired drops entries that are older than BreakerWindow.
func (b *Breaker) removeExpired(now time.Time) {
	if b.taken == nil {
		b.taken = map[string]time.Time{}
	}
	for id, at := range b.taken {
		if now.Sub(at) >= BreakerWindow {
			delete(b.taken, id)
		}
	}
}
