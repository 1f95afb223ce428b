// Package bisect finds the classes of pods whose batches fail, by sending the classes in halves.
// Its functions are pure.
//
// A bisection begins after two whole batches in a row have failed. From then on each batch contains
// the classes of one span only. A span that succeeds is done, one that fails is split in two, and a
// class that fails alone is parked: it is left out of batches for a while.
//
// The invariants:
//   - A class is parked only if its batch, with no other class, got no plan although the previous batch
//     got one. To distinguish a poisonous pod from a planner that is down, the planner has to answer a
//     batch without pods before a single class is parked. If it does not answer that batch, the
//     bisection ends.
//   - A class whose plan arrives but whose NodeClaims are not created is parked only if NodeClaims were
//     created for another batch of the same bisection. An API server that creates no NodeClaims at all
//     does not count as a poisonous pod.
//   - Classes that are neither parked nor in the current span are in a later batch. Every bisection
//     ends, and whole batches follow it.
//   - When its time is over, a parked class is tried alone before whole batches contain it again. If it
//     still fails, that costs one short sequence.
package bisect

import (
	"math"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

const (
	// maxUnanswered is how many whole batches in a row may fail before a bisection begins.
	maxUnanswered = 2
	// FirstParkDuration is how long a class is left out the first time. The duration doubles each
	// time after that, up to MaxParkDuration. If the planner failed by coincidence, pods without
	// fault wait five minutes; pods that do cause the failure delay the others little.
	FirstParkDuration = 5 * time.Minute
	// MaxParkDuration is the longest time for which a class is left out.
	MaxParkDuration = time.Hour
	// maxParked is how many classes can be parked at once. Beyond it the class that was parked
	// first is released, because pods are then not the likely cause of the failures.
	maxParked = 64
)

// allClasses is the span of all classes.
var allClasses = outbox.Span{From: 0, To: math.MaxUint64}

// IsActive reports whether batches contain only some of the classes.
func IsActive(h outbox.Bisection) bool { return h.EmptyBatch || len(h.Spans) > 0 }

// AfterAnswer returns the bisection after a batch that got a plan. created reports whether
// NodeClaims were created for it.
func AfterAnswer(h outbox.Bisection, created bool) outbox.Bisection {
	h.Unanswered, h.LastAnswered = 0, true
	h.Created = IsActive(h) && (h.Created || created)
	switch {
	case h.EmptyBatch:
		h.EmptyBatch = false
	case len(h.Spans) > 0:
		h.Spans = h.Spans[1:]
	}
	return h
}

// Failure is how a batch failed.
type Failure string

const (
	// Unanswered means that the batch got no plan.
	Unanswered Failure = "unanswered"
	// NotCreated means that the batch got a plan, but not all of its NodeClaims were created.
	NotCreated Failure = "uncreated"
)

// AfterFailure returns the bisection after a batch that failed. classes are the sorted hashes of
// the pending classes. allFail reports that every batch fails, with any pods, so that a user has to
// find the cause.
func AfterFailure(h outbox.Bisection, failure Failure, classes []uint64, now time.Time) (next outbox.Bisection, allFail bool) {
	alive := h.LastAnswered
	h.LastAnswered = false
	if h.EmptyBatch {
		return outbox.Bisection{Parked: h.Parked}, true
	}
	if len(h.Spans) == 0 {
		if h.Unanswered++; h.Unanswered < maxUnanswered {
			return h, false
		}
		h.Unanswered, h.Spans = 0, []outbox.Span{allClasses}
	}
	head := h.Spans[0]
	switch in := classesIn(h, head, classes); {
	case len(in) == 0:
		h.Spans = h.Spans[1:]
	case len(in) > 1:
		h.Spans = slices.Concat(splitSpan(head, in), h.Spans[1:])
	case failure == NotCreated && !h.Created && head.Times == 0:
		return retryLast(h)
	case alive || failure == NotCreated:
		h.Parked = addParked(h.Parked, outbox.Parked{Class: in[0], Until: now.Add(parkDuration(head.Times)).UTC(), Times: head.Times + 1})
		h.Spans = h.Spans[1:]
	default:
		h.EmptyBatch = true
	}
	return h, false
}

// retryLast moves the first span behind all others, or ends the bisection if no NodeClaims were
// created for any of the others.
func retryLast(h outbox.Bisection) (next outbox.Bisection, allFail bool) {
	head := h.Spans[0]
	if head.Tried || len(h.Spans) == 1 {
		return outbox.Bisection{Parked: h.Parked}, true
	}
	head.Tried = true
	h.Spans = append(slices.Clone(h.Spans[1:]), head)
	return h, false
}

// PrepareNext returns the bisection for the next batch. It drops spans without a pending class, and
// adds parked classes whose time is over.
func PrepareNext(h outbox.Bisection, classes []uint64, now time.Time) outbox.Bisection {
	h.Spans = slices.DeleteFunc(slices.Clone(h.Spans), func(s outbox.Span) bool { return len(classesIn(h, s, classes)) == 0 })
	if len(h.Spans) == 0 {
		h.EmptyBatch, h.Created = false, false
	}
	if IsActive(h) {
		return h
	}
	h.Parked = slices.DeleteFunc(slices.Clone(h.Parked), func(p outbox.Parked) bool {
		over := !now.Before(p.Until)
		if over && slices.Contains(classes, p.Class) {
			h.Spans = append(h.Spans, outbox.Span{From: p.Class, To: p.Class, Times: p.Times})
		}
		return over
	})
	return h
}

// IncludesClass reports whether the next batch contains the class.
func IncludesClass(h outbox.Bisection, class uint64) bool {
	if _, parked := ParkedUntil(h, class); parked || h.EmptyBatch {
		return false
	}
	return len(h.Spans) == 0 || h.Spans[0].Contains(class)
}

// ParkedUntil returns until when the class is left out, and false if it is not parked.
func ParkedUntil(h outbox.Bisection, class uint64) (time.Time, bool) {
	for _, p := range h.Parked {
		if p.Class == class {
			return p.Until, true
		}
	}
	return time.Time{}, false
}

// classesIn returns the classes of a span that are not parked.
func classesIn(h outbox.Bisection, span outbox.Span, classes []uint64) []uint64 {
	var in []uint64
	for _, class := range classes {
		if _, parked := ParkedUntil(h, class); !parked && span.Contains(class) {
			in = append(in, class)
		}
	}
	return in
}

// splitSpan splits a span so that each part has half of the classes in it.
func splitSpan(span outbox.Span, in []uint64) []outbox.Span {
	middle := in[len(in)/2]
	return []outbox.Span{{From: span.From, To: middle - 1}, {From: middle, To: span.To}}
}

// parkDuration returns how long to leave out a class that was parked this many times before.
func parkDuration(times int) time.Duration {
	return min(FirstParkDuration<<min(times, 8), MaxParkDuration)
}

func addParked(list []outbox.Parked, one outbox.Parked) []outbox.Parked {
	list = append(slices.Clone(list), one)
	return list[max(0, len(list)-maxParked):]
}

// SplitTooLarge returns the bisection after a batch that was too large to store: the next batch has
// half of its classes, and the other half follows. It returns false if the batch has fewer than two
// classes. Then the snapshot is too large, and no class is parked.
func SplitTooLarge(h outbox.Bisection, classes []uint64) (outbox.Bisection, bool) {
	if h.EmptyBatch {
		return h, false
	}
	parts := h.Spans
	if len(parts) == 0 {
		parts = []outbox.Span{allClasses}
	}
	in := classesIn(h, parts[0], classes)
	if len(in) < 2 {
		return h, false
	}
	h.Spans = slices.Concat(splitSpan(parts[0], in), parts[1:])
	return h, true
}
