// Package window gathers pods into batches: the first new pod opens a window,
// each further one extends it by the idle duration, and it never stays open
// longer than the maximum. It is pure but for what it remembers.
//
// Two kinds of pods wait for less: one that comes alone after a while of quiet,
// since nothing speaks for a second; and one that is known to lose its node,
// since it came with all others of that node. Waiting is never longer than by
// the rule above.
package window

import (
	"maps"
	"time"
)

// The defaults of BATCH_IDLE_DURATION and BATCH_MAX_DURATION.
const (
	DefaultIdle = time.Second
	DefaultMax  = 10 * time.Second
)

const (
	// QuietPeriod is how long no new pod must have come for the next to be taken for one
	// alone.
	QuietPeriod = 10 * time.Second
	// LonePodWait is how long such a pod waits for a second one. A workload that is scaled
	// up has its pods judged by the scheduler within milliseconds of each other.
	LonePodWait = 50 * time.Millisecond
)

// Window is one batch window. Its zero value, with durations set, is closed.
type Window struct {
	Idle, Max time.Duration

	openedAt, extendedAt time.Time
	// newKeys are the keys that the last batch did not have, and came when the last of
	// all such came. seen are those of the batch that wait still.
	newKeys, batchKeys map[string]bool
	lastNewAt          time.Time
	// lone is set while the window is one key's alone, rushed when it is over already,
	// and reopened when it was opened without a new key.
	lone, endNow, reopened bool
}

// Observe notes the keys that wait now, and gives those that the last batch did
// not have and that are new since the last call. calm says that no batch is in
// flight. A key that went away is forgotten, so that its return is news; and when
// none of those wait any more for which a window was opened, it is no longer
// open: left open, it would be over at once when the next burst begins, with its
// first pod alone.
func (w *Window) Observe(keys []string, calm bool, now time.Time) []string {
	waiting := make(map[string]bool, len(keys))
	for _, key := range keys {
		waiting[key] = true
	}
	gone := func(key string, _ bool) bool { return !waiting[key] }
	maps.DeleteFunc(w.batchKeys, gone)
	maps.DeleteFunc(w.newKeys, gone)
	if len(keys) == 0 || len(w.newKeys) == 0 && !w.reopened {
		w.reset()
	}
	var fresh []string
	for _, key := range keys {
		if !w.batchKeys[key] && !w.newKeys[key] {
			w.addKey(key, calm, now)
			fresh = append(fresh, key)
		}
	}
	return fresh
}

func (w *Window) addKey(key string, calm bool, now time.Time) {
	if w.newKeys == nil {
		w.newKeys = map[string]bool{}
	}
	w.newKeys[key] = true
	if w.openedAt.IsZero() {
		w.openedAt = now
		w.lone = calm && now.Sub(w.lastNewAt) >= QuietPeriod
	} else {
		w.lone = false
	}
	w.extendedAt, w.lastNewAt = now, now
}

// reset leaves no window open.
func (w *Window) reset() {
	w.openedAt, w.extendedAt = time.Time{}, time.Time{}
	w.lone, w.endNow, w.reopened = false, false, false
}

// IsOver reports whether a window is over: a batch is due.
func (w *Window) IsOver(now time.Time) bool {
	return !w.openedAt.IsZero() && !now.Before(w.EndsAt())
}

// EndsAt is when the window will be over if nothing new comes; zero when none is
// open.
func (w *Window) EndsAt() time.Time {
	switch {
	case w.openedAt.IsZero() || w.endNow:
		return w.openedAt
	case w.lone:
		return w.openedAt.Add(min(LonePodWait, w.Idle, w.Max))
	}
	idle, limit := w.extendedAt.Add(w.Idle), w.openedAt.Add(w.Max)
	if limit.Before(idle) {
		return limit
	}
	return idle
}

// EndNow ends an open window at once.
func (w *Window) EndNow() { w.endNow = true }

// Open opens the window without a new key: what was planned has come to nothing.
func (w *Window) Open(now time.Time) {
	if w.openedAt.IsZero() {
		w.openedAt, w.extendedAt, w.reopened = now, now, true
	}
}

// Close ends the window with a batch of the given keys.
func (w *Window) Close(keys []string) {
	w.reset()
	w.newKeys, w.batchKeys = nil, make(map[string]bool, len(keys))
	for _, key := range keys {
		w.batchKeys[key] = true
	}
}
