package host

import (
	"regexp"
	"sync"
	"time"
)

const (
	// minLogInterval and troubleMax bound how often one trouble is told again.
	minLogInterval = time.Minute
	maxLogInterval = time.Hour
	// maxLogEntries is how many troubles are remembered apart.
	maxLogEntries = 64
)

// variableText is what makes two texts of one trouble differ: ids of requests,
// versions, times, addresses.
var variableText = regexp.MustCompile(`[0-9a-fA-F-]{8,}|[0-9]+`)

// RateLimitedLog tells of failures that no message stands for: a queue that cannot be
// reached, a step that failed. The same text is told once, and again after a
// minute, two, four, up to an hour, with how often it happened meanwhile; what
// lasts would drown the log otherwise. The zero value with a Tell is ready.
type RateLimitedLog struct {
	// Write gets the error and how often it has happened since it was told last.
	Write func(err error, times int)

	mu      sync.Mutex
	entries map[string]*errorEntry
}

// errorEntry is how telling one trouble stands.
type errorEntry struct {
	next  time.Time
	wait  time.Duration
	times int
}

// Report notes an error, and tells it if that is due at now. A nil receiver
// or error does nothing.
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
