// Package hunt finds the classes of pods whose batches get no plan, by sending
// the classes in halves. It is pure.
//
// Two whole batches without a plan begin a hunt. From then on a batch has the
// classes of one span alone: a span that is answered is cleared, one that is not
// is cut in two, and a class that gets no plan alone is parked.
//
// The invariants:
//
//   - A class is parked only when its batch, with nothing else in it, got no
//     plan although the batch just before was answered. A planner that is down is
//     not taken for a poisonous pod: before a class alone is blamed, a batch
//     without any pod has to be answered, and if that is not, the hunt ends.
//   - A class whose plan comes, but whose NodeClaims are not created, is parked only
//     when NodeClaims were created for another batch of the same hunt: an API server
//     that creates none is not taken for a poisonous pod either.
//   - What is neither parked nor in the span that is tried stays for a later
//     batch: every hunt ends, and whole batches follow it.
//   - A class that was parked is tried alone, once its time is over, before whole
//     batches have it again: one that still kills costs one short sequence.
package bisect

import (
	"math"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

const (
	// maxUnanswered is how many whole batches in a row may get no plan.
	maxUnanswered = 2
	// FirstParkDuration is how long a class is left out of batches the first time; each time
	// after that it is twice as long, up to ParkedMost. A planner that failed at the
	// wrong moment costs pods that are not at fault five minutes, and pods that are
	// cost the others little.
	FirstParkDuration = 5 * time.Minute
	// MaxParkDuration is the longest that a class is left out at once.
	MaxParkDuration = time.Hour
	// maxParked is how many classes are parked at once; the one that was parked
	// first goes free then. So many at fault are not the pods' fault.
	maxParked = 64
)

// allClasses is the span of all classes.
var allClasses = outbox.Span{From: 0, To: math.MaxUint64}

// IsActive reports whether batches are partial.
func IsActive(h outbox.Hunt) bool { return h.Probe || len(h.Parts) > 0 }

// AfterAnswer is the hunt after a batch that got a plan; created says that NodeClaims
// were created for it.
func AfterAnswer(h outbox.Hunt, created bool) outbox.Hunt {
	h.Dead, h.Alive = 0, true
	h.Created = IsActive(h) && (h.Created || created)
	switch {
	case h.Probe:
		h.Probe = false
	case len(h.Parts) > 0:
		h.Parts = h.Parts[1:]
	}
	return h
}

// Failure is how a batch failed.
type Failure string

const (
	// Unanswered says that the batch got no plan.
	Unanswered Failure = "unanswered"
	// NotCreated says that it got a plan whose NodeClaims were not all created.
	NotCreated Failure = "uncreated"
)

// AfterFailure is the hunt after a batch that failed. classes are the hashes of those that
// wait, in order. lost says that every batch fails, whatever is in it: it is for
// people to find out why.
func AfterFailure(h outbox.Hunt, failure Failure, classes []uint64, now time.Time) (next outbox.Hunt, lost bool) {
	alive := h.Alive
	h.Alive = false
	if h.Probe {
		return outbox.Hunt{Parked: h.Parked}, true
	}
	if len(h.Parts) == 0 {
		if h.Dead++; h.Dead < maxUnanswered {
			return h, false
		}
		h.Dead, h.Parts = 0, []outbox.Span{allClasses}
	}
	head := h.Parts[0]
	switch in := classesIn(h, head, classes); {
	case len(in) == 0:
		h.Parts = h.Parts[1:]
	case len(in) > 1:
		h.Parts = slices.Concat(splitSpan(head, in), h.Parts[1:])
	case failure == NotCreated && !h.Created && head.Times == 0:
		return retryLast(h)
	case alive || failure == NotCreated:
		h.Parked = addParked(h.Parked, outbox.Parked{Class: in[0], Until: now.Add(parkDuration(head.Times)).UTC(), Times: head.Times + 1})
		h.Parts = h.Parts[1:]
	default:
		h.Probe = true
	}
	return h, false
}

// retryLast tries the first span again after all others, or ends the hunt when none of
// the others had NodeClaims created.
func retryLast(h outbox.Hunt) (next outbox.Hunt, lost bool) {
	head := h.Parts[0]
	if head.Tried || len(h.Parts) == 1 {
		return outbox.Hunt{Parked: h.Parked}, true
	}
	head.Tried = true
	h.Parts = append(slices.Clone(h.Parts[1:]), head)
	return h, false
}

// PrepareNext is the hunt as the next batch is to be built under it: spans of which no
// class waits any more are passed over, and a class whose time is over is tried.
func PrepareNext(h outbox.Hunt, classes []uint64, now time.Time) outbox.Hunt {
	h.Parts = slices.DeleteFunc(slices.Clone(h.Parts), func(s outbox.Span) bool { return len(classesIn(h, s, classes)) == 0 })
	if len(h.Parts) == 0 {
		h.Probe, h.Created = false, false
	}
	if IsActive(h) {
		return h
	}
	h.Parked = slices.DeleteFunc(slices.Clone(h.Parked), func(p outbox.Parked) bool {
		over := !now.Before(p.Until)
		if over && slices.Contains(classes, p.Class) {
			h.Parts = append(h.Parts, outbox.Span{From: p.Class, To: p.Class, Times: p.Times})
		}
		return over
	})
	return h
}

// IncludesClass reports whether the next batch has the class.
func IncludesClass(h outbox.Hunt, class uint64) bool {
	if _, parked := ParkedUntil(h, class); parked || h.Probe {
		return false
	}
	return len(h.Parts) == 0 || h.Parts[0].Holds(class)
}

// ParkedUntil is until when the class is left out, and whether it is.
func ParkedUntil(h outbox.Hunt, class uint64) (time.Time, bool) {
	for _, p := range h.Parked {
		if p.Class == class {
			return p.Until, true
		}
	}
	return time.Time{}, false
}

// classesIn lists the classes of a span that are not parked.
func classesIn(h outbox.Hunt, span outbox.Span, classes []uint64) []uint64 {
	var in []uint64
	for _, class := range classes {
		if _, parked := ParkedUntil(h, class); !parked && span.Holds(class) {
			in = append(in, class)
		}
	}
	return in
}

// splitSpan cuts a span so that each part has half of the classes in it.
func splitSpan(span outbox.Span, in []uint64) []outbox.Span {
	middle := in[len(in)/2]
	return []outbox.Span{{From: span.From, To: middle - 1}, {From: middle, To: span.To}}
}

// parkDuration is how long a class is left out that was so many times before.
func parkDuration(times int) time.Duration {
	return min(FirstParkDuration<<min(times, 8), MaxParkDuration)
}

func addParked(list []outbox.Parked, one outbox.Parked) []outbox.Parked {
	list = append(slices.Clone(list), one)
	return list[max(0, len(list)-maxParked):]
}

// SplitTooLarge is the hunt after a batch that could not be stored because it is too large: the
// next has half of its classes, and the other half comes after that. It returns false if
// the batch has no two classes: then what is beside the pods is too large, and no class
// is blamed.
func SplitTooLarge(h outbox.Hunt, classes []uint64) (outbox.Hunt, bool) {
	if h.Probe {
		return h, false
	}
	parts := h.Parts
	if len(parts) == 0 {
		parts = []outbox.Span{allClasses}
	}
	in := classesIn(h, parts[0], classes)
	if len(in) < 2 {
		return h, false
	}
	h.Parts = slices.Concat(splitSpan(parts[0], in), parts[1:])
	return h, true
}
