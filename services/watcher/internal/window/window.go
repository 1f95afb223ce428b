// Package window gathers pods into batches: the first new pod opens a window,
// each further one extends it by the idle duration, and it never stays open
// longer than the maximum (B080). It is pure but for what it remembers.
package window

import "time"

// The defaults of BATCH_IDLE_DURATION and BATCH_MAX_DURATION (B059).
const (
	DefaultIdle = time.Second
	DefaultMax  = 10 * time.Second
)

// Window is one batch window. Its zero value, with durations set, is closed.
type Window struct {
	Idle, Max time.Duration

	opened, last time.Time
	seen         map[string]bool
}

// Observe notes the keys that wait now. A key is new when the last Close did
// not have it. When none waits, the window is no longer open: left open, it
// would be over at once when the next burst begins, with its first pod alone.
func (w *Window) Observe(keys []string, now time.Time) {
	if len(keys) == 0 {
		w.opened, w.last = time.Time{}, time.Time{}
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	for _, key := range keys {
		if w.seen[key] {
			continue
		}
		w.seen[key] = true
		if w.opened.IsZero() {
			w.opened = now
		}
		w.last = now
	}
}

// Closed reports whether a window is over: a batch is due.
func (w *Window) Closed(now time.Time) bool {
	if w.opened.IsZero() {
		return false
	}
	return now.Sub(w.last) >= w.Idle || now.Sub(w.opened) >= w.Max
}

// Next is when the window will be over if nothing new comes; zero when none is
// open.
func (w *Window) Next() time.Time {
	if w.opened.IsZero() {
		return time.Time{}
	}
	idle, limit := w.last.Add(w.Idle), w.opened.Add(w.Max)
	if limit.Before(idle) {
		return limit
	}
	return idle
}

// Open opens the window without a new key: what was planned has come to nothing.
func (w *Window) Open(now time.Time) {
	if w.opened.IsZero() {
		w.opened, w.last = now, now
	}
}

// Close ends the window with a batch of the given keys.
func (w *Window) Close(keys []string) {
	w.opened, w.last = time.Time{}, time.Time{}
	w.seen = make(map[string]bool, len(keys))
	for _, key := range keys {
		w.seen[key] = true
	}
}
