package eviction

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Forget drops the removals that wait and all answers, because another replica leads. Requests in flight continue, and a pod has no
// second one meanwhile.
func (q *Queue) Forget() {
	q.mu.Lock()
	q.waiting, q.failures = nil, nil
	maps.DeleteFunc(q.listedSince, func(pod types.UID, _ time.Time) bool { return !q.inFlight[pod] })
	q.mu.Unlock()
	q.attempts.forget()
}

// forget drops all answers.
func (t *attemptLog) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byPod)
}
