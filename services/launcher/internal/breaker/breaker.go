// Package breaker stops launches of more instances than a cluster can plausibly need, for example
// after a loop in another service or a forged message.
//
// It counts the instances of the intents of the last minute. An intent counts once, so redeliveries
// do not count. Each process has its own breaker: several launchers make the limit less strict but
// never stop a legitimate launch. Limits of NodePools are enforced at admission, not here.
package breaker

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Limits are the limits of one cluster.
type Limits struct {
	// PerIntent is the maximum number of instances of one intent.
	PerIntent int
	// PerMinute is the maximum number of instances of all intents within any 60 seconds.
	PerMinute int
}

// DefaultLimits are far above the planner's intents (50 claims) and the instances that
// EC2's own limit allows in a minute (1,000, then 2 a second).
var DefaultLimits = Limits{PerIntent: 500, PerMinute: 1000}

// Window is how long an intent counts.
const Window = time.Minute

// Breaker has the intents of the last minute. The zero value has DefaultLimits. It is not
// safe for concurrent use.
type Breaker struct {
	Limits  Limits
	entries []entry
}

type entry struct {
	intent string
	count  int
	at     time.Time
}

// Allow counts an intent that is about to be launched, or returns an error if it must not be
// launched: fault.Denied for an intent above the limits, which a user must raise, and
// fault.Throttled for too many instances in the last minute. The host retries both until the
// request expires.
func (b *Breaker) Allow(now time.Time, intent string, count int) error {
	limits := b.effectiveLimits()
	if most := min(limits.PerIntent, limits.PerMinute); count > most {
		return fault.F("launching intent "+intent, fault.Denied, "it requests %d instances, above the safety limit of %d", count, most).
			WithHint("find the pods or the sender that requested them; if they are needed, raise JOIST_MAX_INSTANCES_PER_INTENT and JOIST_MAX_INSTANCES_PER_MINUTE")
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
			"%d instances were requested within a minute, and %d more would exceed the safety limit of %d", sum, count, limits.PerMinute).
			WithHint("find the pods or the sender that requested them; if they are needed, raise JOIST_MAX_INSTANCES_PER_MINUTE")
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

// dropExpired removes the entries older than Window. Entries are sorted by time.
func (b *Breaker) dropExpired(now time.Time) {
	n := 0
	for n < len(b.entries) && now.Sub(b.entries[n].at) >= Window {
		n++
	}
	b.entries = b.entries[n:]
}
