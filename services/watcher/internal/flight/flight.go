// Package flight decides what to do with the batch in flight. It is pure: the
// outbox, what the cache has seen, and how long this process has been looking.
//
// The invariant: at most one batch is in flight, and the next is built only
// when the claims of the last are in the cache, so that no two plans are made
// from the same free capacity.
package flight

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

const (
	// Resend is how often the batch in flight is sent again, unchanged.
	Resend = 15 * time.Second
	// GiveUpSent is the solve budget (60 s) plus 30 s.
	GiveUpSent = 90 * time.Second
	// GiveUpPart is the same for a part of the pods, while those are looked for that
	// no batch survives: most parts take no second.
	GiveUpPart = 30 * time.Second
	// GiveUpApplying is how long lifecycle may take to write a plan's claims.
	GiveUpApplying = 120 * time.Second
	// GiveUpApplyingPart is the same for a part of the pods.
	GiveUpApplyingPart = 60 * time.Second
	// GiveUpSeeing is how long the cache may take to show them.
	GiveUpSeeing = 120 * time.Second
	// GiveUpUnsure is how long a claim of the last plan may be neither admitted nor
	// gone. It is one claim's trouble, and no batch waits longer for it.
	GiveUpUnsure = 15 * time.Second
	// Reopen is how long pods may stay unschedulable before they are planned
	// again although nothing is new.
	Reopen = 30 * time.Second
)

// Action is what to do now.
type Action string

const (
	// Wait says that nothing is due.
	Wait Action = "wait"
	// Repeat says to send the batch in flight again.
	Repeat Action = "repeat"
	// Open says to build the next batch.
	Open Action = "open"
	// GiveUp says to build the next batch although the last has no plan or its claims
	// are not all created, or close it when no pod waits.
	GiveUp Action = "give-up"
)

// Sight is how much of the last plan the cache shows.
type Sight string

const (
	// Behind says that a claim exists that the cache does not show: what a batch
	// would be built from is older than the plan.
	Behind Sight = "behind"
	// Unsure says that a claim is not admitted yet, or that nobody could say whether
	// it exists.
	Unsure Sight = "unsure"
	// Full says that the cache shows each claim admitted, or that it is gone again.
	Full Sight = "full"
)

// View is what the decision looks at.
type View struct {
	Outbox outbox.Outbox
	// Sight is what is seen of the outbox's claims, once it is done.
	Sight Sight
	// InState is how long this process has seen the outbox as it is, on its
	// monotonic clock.
	InState time.Duration
	// Unsure is how long the sight has been no worse than that.
	Unsure time.Duration
	// SinceSent is how long ago this process sent the batch in flight; negative
	// when it never did.
	SinceSent time.Duration
	// Due says that a batch window is over.
	Due bool
	// Hunting says that batches are partial: the next part waits for no window.
	Hunting bool
	// Waiting says that some pod is provisionable.
	Waiting bool
	// SinceBatch is how long ago this process built a batch; negative when never.
	SinceBatch time.Duration
}

// Decide says what to do now.
func Decide(v View) Action {
	switch v.Outbox.State {
	case outbox.Sent:
		if v.Hunting {
			return v.patience(GiveUpPart, true)
		}
		return v.patience(GiveUpSent, true)
	case outbox.Applying:
		if v.Hunting {
			return v.patience(GiveUpApplyingPart, false)
		}
		return v.patience(GiveUpApplying, false)
	case outbox.Done:
		if !v.sees() {
			return Wait
		}
	case outbox.Idle:
	}
	return v.open()
}

// sees reports whether enough of the last plan is seen, or was waited for long
// enough.
func (v View) sees() bool {
	return v.Sight == Full || v.Sight == Unsure && v.Unsure >= GiveUpUnsure || v.InState >= GiveUpSeeing
}

// patience waits for others, repeating the question where that helps.
func (v View) patience(limit time.Duration, repeat bool) Action {
	switch {
	case v.InState >= limit:
		return GiveUp
	case repeat && (v.SinceSent < 0 || v.SinceSent >= Resend):
		return Repeat
	default:
		return Wait
	}
}

// open starts the next batch when something is new, or when pods have waited
// long enough to be looked at again.
func (v View) open() Action {
	if v.Waiting && (v.Due || v.Hunting || v.SinceBatch >= Reopen) {
		return Open
	}
	return Wait
}
