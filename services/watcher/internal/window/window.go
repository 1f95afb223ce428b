// Package window collects pods into batches. The first new pod opens a window, each further pod
// extends it by the idle duration, and it never stays open longer than the maximum.
//
// Two kinds of pods wait for a shorter time: a pod that arrives alone after a quiet period, because
// a second one is unlikely, and pods whose node is being removed, because all pods of that node
// arrive together. Neither rule makes any pod wait longer.
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
	// QuietPeriod is the time without new pods after which the next one counts as alone.
	QuietPeriod = 10 * time.Second
	// LonePodWait is how long a lone pod waits for a second one. When a workload is scaled up, the
	// scheduler marks its pods unschedulable within milliseconds of each other.
	LonePodWait = 50 * time.Millisecond
)

// Window is one batch window. The zero value with durations set is closed.
type Window struct {
	Idle, Max time.Duration

	openedAt, extendedAt time.Time
	// newKeys are the keys that the last batch did not have, and lastNewAt is when the last such
	// key arrived. batchKeys are the keys of the last batch that are still pending.
	newKeys, batchKeys map[string]bool
	lastNewAt          time.Time
	// lone is set while the window has a single key, endNow when the window is over at once, and
	// reopened when it was opened without a new key.
	lone, endNow, reopened bool
}

// Observe takes the keys that are pending now, and returns the keys that neither the last batch nor
// an earlier call had. noneInFlight reports that no batch is in flight. A key that is no longer
// pending is removed, so that it counts as new when it returns. When none of the keys for which the
// window was opened is pending any more, the window closes. Otherwise it would end at once when the
// next burst begins, with the first pod alone.
func (w *Window) Observe(keys []string, noneInFlight bool, now time.Time) []string {
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
			w.addKey(key, noneInFlight, now)
			fresh = append(fresh, key)
		}
	}
	return fresh
}

func (w *Window) addKey(key string, noneInFlight bool, now time.Time) {
	if w.newKeys == nil {
		w.newKeys = map[string]bool{}
	}
	w.newKeys[key] = true
	if w.openedAt.IsZero() {
		w.openedAt = now
		w.lone = noneInFlight && now.Sub(w.lastNewAt) >= QuietPeriod
	} else {
		w.lone = false
	}
	w.extendedAt, w.lastNewAt = now, now
}

// reset closes the window.
func (w *Window) reset() {
	w.openedAt, w.extendedAt = time.Time{}, time.Time{}
	w.lone, w.endNow, w.reopened = false, false, false
}

// IsOver reports whether a window is over, so that a batch is due.
func (w *Window) IsOver(now time.Time) bool {
	return !w.openedAt.IsZero() && !now.Before(w.EndsAt())
}

// EndsAt returns when the window will be over if no new key arrives; zero if none is open.
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

// Open opens the window without a new key, because pods have to be planned again.
func (w *Window) Open(now time.Time) {
	if w.openedAt.IsZero() {
		w.openedAt, w.extendedAt, w.reopened = now, now, true
	}
}

// Close closes the window; the batch has the given keys.
func (w *Window) Close(keys []string) {
	w.reset()
	w.newKeys, w.batchKeys = nil, make(map[string]bool, len(keys))
	for _, key := range keys {
		w.batchKeys[key] = true
	}
}
