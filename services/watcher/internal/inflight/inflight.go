// Package flight decides what to do with the batch in flight. It is pure: the
// outbox, what the cache has seen, and how long this process has been looking.
//
// The invariant: at most one batch is in flight, and the next is built only
// when the claims of the last are in the cache, so that no two plans are made
// from the same free capacity.
package inflight

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

const (
	// ResendInterval is how often the batch in flight is sent again, unchanged.
	ResendInterval = 15 * time.Second
	// SentTimeout is the solve budget (60 s) plus 30 s.
	SentTimeout = 90 * time.Second
	// PartSentTimeout is the same for a part of the pods, while those are looked for that
	// no batch survives: most parts take no second.
	PartSentTimeout = 30 * time.Second
	// ApplyingTimeout is how long lifecycle may take to write a plan's claims.
	ApplyingTimeout = 120 * time.Second
	// PartApplyingTimeout is the same for a part of the pods.
	PartApplyingTimeout = 60 * time.Second
	// CacheTimeout is how long the cache may take to show them.
	CacheTimeout = 120 * time.Second
	// UnconfirmedTimeout is how long a claim of the last plan may be neither admitted nor
	// gone. It is one claim's trouble, and no batch waits longer for it.
	UnconfirmedTimeout = 15 * time.Second
	// ReplanInterval is how long pods may stay unschedulable before they are planned
	// again although nothing is new.
	ReplanInterval = 30 * time.Second
)

// Action is what to do now.
type Action string

const (
	// Wait says that nothing is due.
	Wait Action = "wait"
	// SendAgain says to send the batch in flight again.
	SendAgain Action = "repeat"
	// Build says to build the next batch.
	Build Action = "open"
	// GiveUp says to build the next batch although the last has no plan or its claims
	// are not all created, or close it when no pod waits.
	GiveUp Action = "give-up"
)

// Visibility is how much of the last plan the cache shows.
type Visibility string

const (
	// Stale says that a claim exists that the cache does not show: what a batch
	// would be built from is older than the plan.
	Stale Visibility = "behind"
	// Unconfirmed says that a claim is not admitted yet, or that nobody could say whether
	// it exists.
	Unconfirmed Visibility = "unsure"
	// Complete says that the cache shows each claim admitted, or that it is gone again.
	Complete Visibility = "full"
)

// BatchState is what the decision looks at.
type BatchState struct {
	Outbox outbox.Outbox
	// Visibility is what is seen of the outbox's claims, once it is done.
	Visibility Visibility
	// InState is how long this process has seen the outbox as it is, on its
	// monotonic clock.
	InState time.Duration
	// UnconfirmedFor is how long the sight has been no worse than that.
	UnconfirmedFor time.Duration
	// SinceSent is how long ago this process sent the batch in flight; negative
	// when it never did.
	SinceSent time.Duration
	// WindowOver says that a batch window is over.
	WindowOver bool
	// Bisecting says that batches are partial: the next part waits for no window.
	Bisecting bool
	// HasPending says that some pod is provisionable.
	HasPending bool
	// SinceBatch is how long ago this process built a batch; negative when never.
	SinceBatch time.Duration
}

// Decide says what to do now.
func Decide(v BatchState) Action {
	switch v.Outbox.State {
	case outbox.Sent:
		if v.Bisecting {
			return v.waitOrGiveUp(PartSentTimeout, true)
		}
		return v.waitOrGiveUp(SentTimeout, true)
	case outbox.Applying:
		if v.Bisecting {
			return v.waitOrGiveUp(PartApplyingTimeout, false)
		}
		return v.waitOrGiveUp(ApplyingTimeout, false)
	case outbox.Done:
		if !v.hasCaughtUp() {
			return Wait
		}
	case outbox.Idle:
	}
	return v.buildIfDue()
}

// hasCaughtUp reports whether enough of the last plan is seen, or was waited for long
// enough.
func (v BatchState) hasCaughtUp() bool {
	return v.Visibility == Complete || v.Visibility == Unconfirmed && v.UnconfirmedFor >= UnconfirmedTimeout || v.InState >= CacheTimeout
}

// waitOrGiveUp waits for others, repeating the question where that helps.
func (v BatchState) waitOrGiveUp(limit time.Duration, repeat bool) Action {
	switch {
	case v.InState >= limit:
		return GiveUp
	case repeat && (v.SinceSent < 0 || v.SinceSent >= ResendInterval):
		return SendAgain
	default:
		return Wait
	}
}

// buildIfDue starts the next batch when something is new, or when pods have waited
// long enough to be looked at again.
func (v BatchState) buildIfDue() Action {
	if v.HasPending && (v.WindowOver || v.Bisecting || v.SinceBatch >= ReplanInterval) {
		return Build
	}
	return Wait
}
