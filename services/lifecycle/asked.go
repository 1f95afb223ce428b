package lifecycle

import (
	"sync"
	"time"
)

// asked remembers when questions were asked last, by what they are about. It is
// safe for concurrent use. Losing it repeats a question.
type asked struct {
	now func() time.Time

	mu sync.Mutex
	at map[string]time.Time
}

func newAsked(now func() time.Time) *asked { return &asked{now: now, at: map[string]time.Time{}} }

// due reports whether a question may be asked again, and notes that it was.
func (a *asked) due(key string, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.Sub(a.at[key]) >= every {
		a.at[key] = now
		return true
	}
	return false
}

// note remembers that something was asked now, or happened.
func (a *asked) note(key string) { a.due(key, 0) }

// within reports whether it was asked, and no longer than that ago.
func (a *asked) within(key string, last time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now().Sub(a.at[key]) < last
}

// forget lets a question that was not answered be asked again at once.
func (a *asked) forget(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.at, key)
}

// prune forgets what was asked longer ago than that.
func (a *asked) prune(last time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, at := range a.at {
		if a.now().Sub(at) > last {
			delete(a.at, key)
		}
	}
}
