// Package breaker stops a cluster that asks for more instances than anybody can
// have meant: a loop somewhere, or somebody who may send to the launcher's queue.
//
// The idea: a sliding minute of intents with how many instances each asked for.
// An intent counts once however often it is asked, so that redelivery is free.
// It is pure but for its memory, and its memory is one process's: that several
// launchers each have one makes the limit softer and never wrong. What a
// NodePool may have is not its business: the door checks that.
package breaker

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Limits are what one cluster may ask for.
type Limits struct {
	// PerIntent is the most instances of one intent.
	PerIntent int
	// PerMinute is the most instances of all intents within any 60 seconds.
	PerMinute int
}

// DefaultLimits limits are far above what a planner writes (50 claims an intent) and
// what EC2 starts in a minute by its own bucket (1,000, then 2 a second).
var DefaultLimits = Limits{PerIntent: 500, PerMinute: 1000}

// Window is how long an intent counts.
const Window = time.Minute

// Breaker remembers the intents of the last minute. The zero value has Generous
// limits and is not safe for concurrent use.
type Breaker struct {
	Limits  Limits
	entries []entry
}

type entry struct {
	intent string
	count  int
	at     time.Time
}

// Allow notes that an intent is about to be launched, or says why it must not be:
// fault.Denied for one that is too large, which a person has to allow, and
// fault.Throttled for too many at once, which passes. Both are tried again as
// long as the request lives, so nothing is lost.
func (b *Breaker) Allow(now time.Time, intent string, count int) error {
	limits := b.effectiveLimits()
	if most := min(limits.PerIntent, limits.PerMinute); count > most {
		return fault.F("launching intent "+intent, fault.Denied, "it asks for %d instances at once, and %d are allowed", count, most).
			WithHint("find out who asks for so many; if it is meant, raise JOIST_MAX_INSTANCES_PER_INTENT and JOIST_MAX_INSTANCES_PER_MINUTE")
	}
	b.dropExpired(now)
	sum := 0
	for _, e := range b.entries {
		if e.intent == intent {
			return nil
		}
		sum += e.count
	}
	if sum+count > limits.PerMinute {
		return fault.F("launching intent "+intent, fault.Throttled,
			"%d instances were asked for within a minute, and with %d more it would be above %d", sum, count, limits.PerMinute).
			WithHint("find out who asks for so many; if it is meant, raise JOIST_MAX_INSTANCES_PER_MINUTE")
	}
	b.entries = append(b.entries, entry{intent, count, now})
	return nil
}

func (b *Breaker) effectiveLimits() Limits {
	out := b.Limits
	if out.PerIntent <= 0 {
		out.PerIntent = DefaultLimits.PerIntent
	}
	if out.PerMinute <= 0 {
		out.PerMinute = DefaultLimits.PerMinute
	}
	return out
}

// dropExpired drops what is older than the window. Entries are in order of time.
func (b *Breaker) dropExpired(now time.Time) {
	n := 0
	for n < len(b.entries) && now.Sub(b.entries[n].at) >= Window {
		n++
	}
	b.entries = b.entries[n:]
}
