package host

import (
	"regexp"
	"sync"
	"time"
)

const (
	// troubleMin and troubleMax bound how often one trouble is told again.
	troubleMin = time.Minute
	troubleMax = time.Hour
	// troublesMax is how many troubles are remembered apart.
	troublesMax = 64
)

// varying is what makes two texts of one trouble differ: ids of requests,
// versions, times, addresses.
var varying = regexp.MustCompile(`[0-9a-fA-F-]{8,}|[0-9]+`)

// Trouble tells of failures that no message stands for: a queue that cannot be
// reached, a step that failed. The same text is told once, and again after a
// minute, two, four, up to an hour, with how often it happened meanwhile; what
// lasts would drown the log otherwise. The zero value with a Tell is ready.
type Trouble struct {
	// Tell gets the error and how often it has happened since it was told last.
	Tell func(err error, times int)

	mu    sync.Mutex
	known map[string]*told
}

// told is how telling one trouble stands.
type told struct {
	next  time.Time
	wait  time.Duration
	times int
}

// Happened notes an error, and tells it if that is due at now. A nil receiver
// or error does nothing.
func (t *Trouble) Happened(now time.Time, err error) {
	if t == nil || err == nil || t.Tell == nil {
		return
	}
	if times, due := t.due(now, varying.ReplaceAllString(err.Error(), "#")); due {
		t.Tell(err, times)
	}
}

func (t *Trouble) due(now time.Time, text string) (times int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.known[text]
	if one == nil {
		if t.known == nil || len(t.known) >= troublesMax {
			t.known = map[string]*told{}
		}
		one = &told{}
		t.known[text] = one
	}
	one.times++
	if now.Before(one.next) {
		return 0, false
	}
	times = one.times
	one.times, one.wait = 0, min(max(one.wait*2, troubleMin), troubleMax)
	one.next = now.Add(one.wait)
	return times, true
}
