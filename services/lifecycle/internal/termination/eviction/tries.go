package eviction

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The backoff of one pod.
const (
	base = 100 * time.Millisecond
	most = 10 * time.Second
)

// keep is how long a try is remembered that nobody asks about any more.
const keep = time.Hour

// Try is how the removal of one pod stands.
type Try struct {
	// Err is the last answer, nil when it was granted.
	Err error
	// Since is when it was first refused without having been granted since.
	Since time.Time
	// Last is when the last answer came.
	Last time.Time

	next time.Time
	wait time.Duration
}

// tries remembers how removals were answered. Losing it repeats a question.
type tries struct {
	mu sync.Mutex
	of map[types.UID]Try
}

// may reports whether the pod may be asked for again.
func (t *tries) may(pod types.UID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !now.Before(t.of[pod].next)
}

// get is the pod's last answer, if there was one.
func (t *tries) get(pod types.UID) (Try, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	try, ok := t.of[pod]
	return try, ok
}

// answered notes an answer. A pod that is gone, or that another took the name of,
// counts as removed. One that was granted is not asked for again until the watch
// must have told of it.
func (t *tries) answered(pod *corev1.Pod, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	try := t.of[pod.UID]
	if err == nil || fault.Is(err, fault.Missing, fault.Conflict) {
		t.of[pod.UID] = Try{Last: now, next: now.Add(most)}
		return
	}
	if try.Err == nil {
		try.Since = now
	}
	try.Err, try.Last = err, now
	try.wait = min(max(2*try.wait, base), most)
	try.next = now.Add(try.wait)
	t.of[pod.UID] = try
}

// due is when the first pod that was refused may be asked for again, of those that
// might not be asked for at the time since; zero when there is none. One that waits
// for a second or more is met by a look that comes anyway.
func (t *tries) due(since time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	for _, try := range t.of {
		if try.Err != nil && try.wait < time.Second && try.next.After(since) && (first.IsZero() || try.next.Before(first)) {
			first = try.next
		}
	}
	return first
}

// forget drops what is old.
func (t *tries) forget(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pod, try := range t.of {
		if now.Sub(try.next) > keep {
			delete(t.of, pod)
		}
	}
}
