package eviction

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// minBackoff is the backoff of a pod after its first rejection.
	minBackoff = 100 * time.Millisecond
	// watchDelay is how long a pod is not tried again after its removal was accepted. The watch must have delivered the
	// change by then.
	watchDelay = 10 * time.Second
)

// attemptRetention is how long an attempt is stored after its backoff. A pod that still must go is tried again long before;
// most of the others are gone.
const attemptRetention = 5 * time.Minute

// Attempt is the state of one pod's removal.
type Attempt struct {
	// Err is the error of the last answer, nil if the removal was accepted.
	Err error
	// Since is when it was first rejected after it was last accepted.
	Since time.Time
	// Last is when the last answer arrived.
	Last time.Time

	next time.Time
	wait time.Duration
}

// attemptLog stores the answers by pod. If it is lost, requests are repeated.
type attemptLog struct {
	maxBackoff time.Duration

	mu    sync.Mutex
	byPod map[types.UID]Attempt
}

// mayRetry reports whether the pod's backoff has passed.
func (t *attemptLog) mayRetry(pod types.UID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !now.Before(t.byPod[pod].next)
}

// find returns the pod's last attempt, if there was one.
func (t *attemptLog) find(pod types.UID) (Attempt, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	try, ok := t.byPod[pod]
	return try, ok
}

// record stores an answer. A pod that is deleted, or whose name another pod has, counts as removed.
// A pod whose removal was accepted is not tried again for watchDelay.
func (t *attemptLog) record(pod *corev1.Pod, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	try := t.byPod[pod.UID]
	if err == nil || fault.Is(err, fault.Missing, fault.Conflict) {
		t.byPod[pod.UID] = Attempt{Last: now, next: now.Add(watchDelay)}
		return
	}
	if try.Err == nil {
		try.Since = now
	}
	try.Err, try.Last = err, now
	try.wait = min(max(2*try.wait, minBackoff), t.maxBackoff)
	try.next = now.Add(try.wait)
	t.byPod[pod.UID] = try
}

// nextRetry returns when the first rejected pod may be retried, of the pods whose backoff had not
// passed at the given time, or zero. Backoffs of a second or more are covered by the regular
// reconcile.
func (t *attemptLog) nextRetry(since time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	for _, try := range t.byPod {
		if try.Err != nil && try.wait < time.Second && try.next.After(since) && (first.IsZero() || try.next.Before(first)) {
			first = try.next
		}
	}
	return first
}

// prune drops old attempts.
func (t *attemptLog) prune(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pod, try := range t.byPod {
		if now.Sub(try.next) > attemptRetention {
			delete(t.byPod, pod)
		}
	}
}

// forget drops all answers.
func (t *attemptLog) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byPod)
}
