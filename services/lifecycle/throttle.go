package lifecycle

import (
	"sync"
	"time"
)

// throttle records when actions were last executed, by key. It is safe for concurrent use. If it is
// lost, actions are repeated.
type throttle struct {
	now func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, last: map[string]time.Time{}}
}

// allow reports whether an action may be repeated, and records it if so.
func (a *throttle) allow(key string, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.Sub(a.last[key]) >= every {
		a.last[key] = now
		return true
	}
	return false
}

// record records that the action is executed now.
func (a *throttle) record(key string) { a.allow(key, 0) }

// usedWithin reports whether the action was executed within that time.
func (a *throttle) usedWithin(key string, last time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now().Sub(a.last[key]) < last
}

// nextAllowed returns when the action is allowed again; zero if it was not executed.
func (a *throttle) nextAllowed(key string, every time.Duration) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, was := a.last[key]; was {
		return at.Add(every)
	}
	return time.Time{}
}

// reset allows the action again at once, because it failed.
func (a *throttle) reset(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, key)
}

// removeOlder drops actions that were executed longer ago than this.
func (a *throttle) removeOlder(last time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, at := range a.last {
		if a.now().Sub(at) > last {
			delete(a.last, key)
		}
	}
}
