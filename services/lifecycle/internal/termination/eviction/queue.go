// Package eviction asks for the removal of pods beside everything else that
// lifecycle does: nothing waits for an eviction, and an eviction that hangs holds
// up no other but the one that would take its place.
//
// The invariants: a pod is asked for once at a time; no more than Parallel are
// under way; what the last look did not list, or listed long ago, is not begun;
// and one that is refused is asked for again after 100 ms, then twice as long each
// time, up to 10 s.
package eviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// timeout is how long one removal may take.
	timeout = 30 * time.Second
	// valid is how long after a look its removals may be begun: not as long as it
	// takes another replica to lead.
	valid = 10 * time.Second
	// late is when an answer is.
	late = 5 * time.Second
)

// told is how many failures are spelled out at a time.
const told = 5

// Removal is one pod to be removed.
type Removal struct {
	Pod *corev1.Pod
	// Do asks for it.
	Do func(ctx context.Context) error
}

// Queue removes pods.
type Queue struct {
	now      func() time.Time
	parallel int
	tries    tries

	mu      sync.Mutex
	waiting []Removal
	until   time.Time
	// listed is since when those that wait or are under way do.
	listed   map[types.UID]time.Time
	under    map[types.UID]bool
	failures []error
}

// New makes a queue. With parallel up to one the removals happen in order, within
// Remove; with more they happen beside it.
func New(parallel int, now func() time.Time) *Queue {
	return &Queue{now: now, parallel: parallel, tries: tries{of: map[types.UID]Try{}}, under: map[types.UID]bool{}, listed: map[types.UID]time.Time{}}
}

// May reports whether the pod may be asked for now: it is not under way, and was
// not refused a moment ago.
func (q *Queue) May(pod *corev1.Pod) bool {
	q.mu.Lock()
	busy := q.under[pod.UID]
	q.mu.Unlock()
	return !busy && q.tries.may(pod.UID, q.now())
}

// Answer is what the last request for the pod came to, if there was one. That an
// answer is late is one.
func (q *Queue) Answer(pod *corev1.Pod) (Try, bool) {
	try, ok := q.tries.get(pod.UID)
	q.mu.Lock()
	defer q.mu.Unlock()
	if since, waits := q.listed[pod.UID]; waits && try.Err == nil && q.now().Sub(since) >= late {
		return Try{Since: since, Err: fault.F("evicting", fault.Unknown, "the API server does not answer, or answers others first")}, true
	}
	return try, ok
}

// Asked is when the last answer about the pod came; zero when none did.
func (q *Queue) Asked(pod *corev1.Pod) time.Time {
	try, _ := q.tries.get(pod.UID)
	return try.Last
}

// Due is when the first pod that was refused may be asked for again, of those that
// might not be at the time of the last look; zero when there is none.
func (q *Queue) Due(looked time.Time) time.Time { return q.tries.due(looked) }

// Forget drops what was remembered of pods that nobody asks about any more.
func (q *Queue) Forget() { q.tries.forget(q.now()) }

// Remove lists the pods to be removed, the most urgent first. It takes the place
// of what an earlier call listed and was not begun. It returns what went wrong
// since the last call; a refusal by a budget is the ordinary course of things.
func (q *Queue) Remove(ctx context.Context, removals []Removal) error {
	if q.parallel <= 1 {
		for _, r := range removals {
			q.one(ctx, r)
		}
		return q.troubles()
	}
	// A look has an end, and what it began goes on.
	ctx = context.WithoutCancel(ctx)
	q.mu.Lock()
	q.list(removals)
	for range min(q.parallel-len(q.under), len(removals)) {
		if r, ok := q.take(); ok {
			go q.work(ctx, r)
		}
	}
	q.mu.Unlock()
	return q.troubles()
}

// list takes note of what is to be removed, but for what is being removed: its
// answer may come before its turn, and it would be asked for twice. The caller
// holds the lock.
func (q *Queue) list(removals []Removal) {
	now := q.now()
	removals = slices.DeleteFunc(slices.Clone(removals), func(r Removal) bool { return q.under[r.Pod.UID] })
	q.waiting, q.until = removals, now.Add(valid)
	before := q.listed
	q.listed = map[types.UID]time.Time{}
	for pod := range q.under {
		q.listed[pod] = before[pod]
	}
	for _, r := range removals {
		since, known := before[r.Pod.UID]
		if !known {
			since = now
		}
		q.listed[r.Pod.UID] = since
	}
}

// work does one removal after the other until none waits.
func (q *Queue) work(ctx context.Context, r Removal) {
	for ok := true; ok; {
		q.one(ctx, r)
		q.mu.Lock()
		delete(q.under, r.Pod.UID)
		delete(q.listed, r.Pod.UID)
		r, ok = q.take()
		q.mu.Unlock()
	}
}

// take begins the next removal. The caller holds the lock.
func (q *Queue) take() (Removal, bool) {
	if len(q.waiting) == 0 || !q.now().Before(q.until) {
		return Removal{}, false
	}
	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.under[r.Pod.UID] = true
	return r, true
}

func (q *Queue) one(ctx context.Context, r Removal) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.Do(ctx)
	q.tries.answered(r.Pod, err, q.now())
	if err == nil || fault.Is(err, fault.Missing, fault.Conflict, fault.Throttled) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failures = append(q.failures, err)
}

// troubles takes the failures since it was last called: a few, and a count.
func (q *Queue) troubles() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	failures := q.failures
	q.failures = nil
	if more := len(failures) - told; more > 0 {
		failures = append(failures[:told:told], fmt.Errorf("and %d more removals of pods", more))
	}
	return errors.Join(failures...)
}
