package host

import (
	"regexp"
	"sync"
	"time"
)

const (
	// minLogInterval and maxLogInterval bound the interval between two reports of the same error.
	minLogInterval = time.Minute
	maxLogInterval = time.Hour
	// maxLogEntries is how many different errors are tracked.
	maxLogEntries = 64
)

// variableText matches the parts in which two texts of the same error differ: request ids, versions, times,
// addresses.
var variableText = regexp.MustCompile(`[0-9a-fA-F-]{8,}|[0-9]+`)

// RateLimitedLog reports errors that belong to no message, such as an unreachable queue or a failed reconcile. It
// reports the same text once, and again after one minute, two, four, up to an hour, with the number of occurrences
// since, so that a lasting error does not flood the log. The zero value with Write set is ready to use.
type RateLimitedLog struct {
	// Write receives the error and how often it has happened since the last report.
	Write func(err error, times int)

	mu      sync.Mutex
	entries map[string]*errorEntry
}

// errorEntry is the state of one error: when it may be reported next, and how often it happened since.
type errorEntry struct {
	next  time.Time
	wait  time.Duration
	times int
}

// Report counts an error and writes it if it is due at now. A nil receiver or error does nothing.
func (t *RateLimitedLog) Report(now time.Time, err error) {
	if t == nil || err == nil || t.Write == nil {
		return
	}
	if times, due := t.countError(now, variableText.ReplaceAllString(err.Error(), "#")); due {
		t.Write(err, times)
	}
}

func (t *RateLimitedLog) countError(now time.Time, text string) (times int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.entries[text]
	if one == nil {
		if t.entries == nil || len(t.entries) >= maxLogEntries {
			t.entries = map[string]*errorEntry{}
		}
		one = &errorEntry{}
		t.entries[text] = one
	}
	one.times++
	if now.Before(one.next) {
		return 0, false
	}
	times = one.times
	one.times, one.wait = 0, min(max(one.wait*2, minLogInterval), maxLogInterval)
	one.next = now.Add(one.wait)
	return times, true
}
