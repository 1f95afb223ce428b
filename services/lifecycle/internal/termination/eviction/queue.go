// Package eviction requests the removal of pods concurrently with the rest of lifecycle. Nothing
// waits for an eviction, and an eviction that hangs only occupies one worker.
//
// The invariants: a pod has one request in flight at a time; at most as many requests as workers
// are in flight; a removal that the last reconcile did not list, or listed too long ago, is not
// started; and a rejected pod is retried after 100 ms, then twice as long each time, up to the
// longest backoff of the queue.
//
// Evictions and forced deletions have a queue each. An eviction may hang, or be rejected for hours,
// but a deletion that starts late takes a part of the pod's grace period away.
package eviction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// requestTimeout is how long one removal may take.
	requestTimeout = 30 * time.Second
	// listValidity is how long after a reconcile its removals may be started.
	listValidity = 10 * time.Second
	// slowAnswer is how long a request may be unanswered before it is reported.
	slowAnswer = 5 * time.Second
)

// The longest backoffs of rejected evictions and of rejected deletions.
const (
	EvictionBackoff = 10 * time.Second
	DeletionBackoff = time.Second
)

// maxReportedErrors is how many errors are reported at a time.
const maxReportedErrors = 5

// Removal is one pod to remove.
type Removal struct {
	Pod *corev1.Pod
	// Do requests the removal.
	Do func(ctx context.Context) error
}

// Queue removes pods.
type Queue struct {
	now      func() time.Time
	parallel int
	attempts attemptLog

	mu         sync.Mutex
	waiting    []Removal
	validUntil time.Time
	// listedSince is since when a removal waits or is in flight.
	listedSince map[types.UID]time.Time
	inFlight    map[types.UID]bool
	failures    []error
}

// New returns a queue. With parallel up to one, removals are made in order within Remove; otherwise
// that many goroutines make them. The backoff of a rejected pod grows up to maxBackoff.
func New(parallel int, maxBackoff time.Duration, now func() time.Time) *Queue {
	return &Queue{
		now: now, parallel: parallel, attempts: attemptLog{maxBackoff: maxBackoff, byPod: map[types.UID]Attempt{}},
		inFlight: map[types.UID]bool{}, listedSince: map[types.UID]time.Time{},
	}
}

// MayRemove reports whether the pod's removal may be tried now: it is not in flight and its backoff
// has passed.
func (q *Queue) MayRemove(pod *corev1.Pod) bool {
	q.mu.Lock()
	busy := q.inFlight[pod.UID]
	q.mu.Unlock()
	return !busy && q.attempts.mayRetry(pod.UID, q.now())
}

// LastAttempt returns the result of the last request for the pod, if there was one. A request that
// is not answered in time counts as failed.
func (q *Queue) LastAttempt(pod *corev1.Pod) (Attempt, bool) {
	try, ok := q.attempts.find(pod.UID)
	q.mu.Lock()
	defer q.mu.Unlock()
	if since, waits := q.listedSince[pod.UID]; waits && try.Err == nil && q.now().Sub(since) >= slowAnswer {
		return Attempt{Since: since, Err: fault.F("evicting", fault.Unknown, "the API server has not answered")}, true
	}
	return try, ok
}

// LastAnswered returns when the last request for the pod was answered; zero if none was.
func (q *Queue) LastAnswered(pod *corev1.Pod) time.Time {
	try, _ := q.attempts.find(pod.UID)
	return try.Last
}

// NextRetry returns when the first rejected pod may be retried, of the pods whose backoff had not
// passed at the last reconcile, or zero.
func (q *Queue) NextRetry(looked time.Time) time.Time { return q.attempts.nextRetry(looked) }

// Prune drops state of pods that are no longer tried.
func (q *Queue) Prune() { q.attempts.prune(q.now()) }

// Remove replaces the list of pods to remove, the most urgent first; removals in flight continue.
// It returns the errors since the last call. A rejection by a budget is not an error.
func (q *Queue) Remove(ctx context.Context, removals []Removal) error {
	if q.parallel <= 1 {
		for _, r := range removals {
			q.removePod(ctx, r)
		}
		return q.takeErrors()
	}
	// The reconcile's context ends before its removals do.
	ctx = context.WithoutCancel(ctx)
	q.mu.Lock()
	q.setWaiting(removals)
	for range min(q.parallel-len(q.inFlight), len(removals)) {
		if r, ok := q.startNext(); ok {
			go q.runWorker(ctx, r)
		}
	}
	q.mu.Unlock()
	return q.takeErrors()
}

// setWaiting sets the list without the pods in flight: otherwise an answered pod could be requested
// a second time. The caller holds the lock.
func (q *Queue) setWaiting(removals []Removal) {
	now := q.now()
	removals = slices.DeleteFunc(slices.Clone(removals), func(r Removal) bool { return q.inFlight[r.Pod.UID] })
	q.waiting, q.validUntil = removals, now.Add(listValidity)
	before := q.listedSince
	q.listedSince = map[types.UID]time.Time{}
	for pod := range q.inFlight {
		q.listedSince[pod] = before[pod]
	}
	for _, r := range removals {
		since, known := before[r.Pod.UID]
		if !known {
			since = now
		}
		q.listedSince[r.Pod.UID] = since
	}
}

// runWorker makes removals until none waits.
func (q *Queue) runWorker(ctx context.Context, r Removal) {
	for ok := true; ok; {
		q.removePod(ctx, r)
		q.mu.Lock()
		delete(q.inFlight, r.Pod.UID)
		delete(q.listedSince, r.Pod.UID)
		r, ok = q.startNext()
		q.mu.Unlock()
	}
}

// startNext starts the next removal. The caller holds the lock.
func (q *Queue) startNext() (Removal, bool) {
	if len(q.waiting) == 0 || !q.now().Before(q.validUntil) {
		return Removal{}, false
	}
	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.inFlight[r.Pod.UID] = true
	return r, true
}

func (q *Queue) removePod(ctx context.Context, r Removal) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.Do(ctx)
	q.attempts.record(r.Pod, err, q.now())
	if err == nil || fault.Is(err, fault.Missing, fault.Conflict, fault.Throttled) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failures = append(q.failures, err)
}

// takeErrors returns and clears the errors: a few, and the number of the others.
func (q *Queue) takeErrors() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	failures := q.failures
	q.failures = nil
	if more := len(failures) - maxReportedErrors; more > 0 {
		failures = append(failures[:maxReportedErrors:maxReportedErrors], fmt.Errorf("and %d more failed pod removals", more))
	}
	return errors.Join(failures...)
}

// Forget drops the removals that wait and all answers, because another replica leads. Requests in flight continue, and a pod has no
// second one meanwhile.
func (q *Queue) Forget() {
	q.mu.Lock()
	q.waiting, q.failures = nil, nil
	maps.DeleteFunc(q.listedSince, func(pod types.UID, _ time.Time) bool { return !q.inFlight[pod] })
	q.mu.Unlock()
	q.attempts.forget()
}
