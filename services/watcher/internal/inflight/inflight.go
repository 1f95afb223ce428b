// Package inflight decides what to do with the batch in flight. Its functions are pure: their
// inputs are the outbox, the state of the cache, and how long this process has seen that state.
//
// The invariant: at most one batch is in flight, and the next is built only when the cache contains
// the claims of the last, so that no two plans use the same free capacity.
package inflight

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

const (
	// ResendInterval is how often the batch in flight is sent again, unchanged.
	ResendInterval = 15 * time.Second
	// SentTimeout is how long to wait for a plan: the solver's limit of 60 s plus 30 s.
	SentTimeout = 90 * time.Second
	// PartSentTimeout is the same for a part of the pods during a bisection. Most parts are planned
	// within a second.
	PartSentTimeout = 30 * time.Second
	// ApplyingTimeout is how long lifecycle may take to create a plan's claims.
	ApplyingTimeout = 120 * time.Second
	// PartApplyingTimeout is the same for a part of the pods.
	PartApplyingTimeout = 60 * time.Second
	// CacheTimeout is how long the cache may take to show the claims.
	CacheTimeout = 120 * time.Second
	// UnconfirmedTimeout is how long a claim of the last plan may exist without being admitted.
	// After it, batches continue without that claim.
	UnconfirmedTimeout = 15 * time.Second
	// ReplanInterval is how often pods that stay unschedulable are planned again although nothing
	// has changed.
	ReplanInterval = 30 * time.Second
)

// Action is the action to take now.
type Action string

const (
	// Wait means that nothing is due.
	Wait Action = "wait"
	// SendAgain means to send the batch in flight again.
	SendAgain Action = "repeat"
	// Build means to build the next batch.
	Build Action = "open"
	// GiveUp means to build the next batch although the last has no plan, or not all of its claims
	// were created. If no pods are pending, the last batch is closed.
	GiveUp Action = "give-up"
)

// Visibility is how much of the last plan the cache contains.
type Visibility string

const (
	// Stale means that a claim exists that the cache does not contain: the cache is older than the
	// plan.
	Stale Visibility = "behind"
	// Unconfirmed means that a claim is not admitted yet, or that the API server could not report
	// whether it exists.
	Unconfirmed Visibility = "unsure"
	// Complete means that each claim is admitted in the cache, or is deleted.
	Complete Visibility = "full"
)

// BatchState is the input of Decide.
type BatchState struct {
	Outbox outbox.Outbox
	// Visibility is how much of the outbox's claims the cache contains, once the outbox is done.
	Visibility Visibility
	// InState is how long this process has seen the outbox in its state, by its monotonic clock.
	InState time.Duration
	// UnconfirmedFor is how long the visibility has been Unconfirmed or better.
	UnconfirmedFor time.Duration
	// SinceSent is how long ago this process sent the batch in flight; negative if it has not.
	SinceSent time.Duration
	// WindowOver reports that a batch window is over.
	WindowOver bool
	// Bisecting reports that batches are parts of a bisection, which do not wait for a window.
	Bisecting bool
	// HasPending reports that some pod is provisionable.
	HasPending bool
	// SinceBatch is how long ago this process built a batch; negative if it has not.
	SinceBatch time.Duration
}

// Decide returns what to do now.
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

// hasCaughtUp reports whether the cache contains enough of the last plan, or a timeout has passed.
func (v BatchState) hasCaughtUp() bool {
	return v.Visibility == Complete || v.Visibility == Unconfirmed && v.UnconfirmedFor >= UnconfirmedTimeout || v.InState >= CacheTimeout
}

// waitOrGiveUp waits until the timeout for the service that has to act. If resend is set, it
// resends the message when that is due.
func (v BatchState) waitOrGiveUp(timeout time.Duration, resend bool) Action {
	switch {
	case v.InState >= timeout:
		return GiveUp
	case resend && (v.SinceSent < 0 || v.SinceSent >= ResendInterval):
		return SendAgain
	default:
		return Wait
	}
}

// buildIfDue starts the next batch when something has changed, or when pods have been pending for
// ReplanInterval.
func (v BatchState) buildIfDue() Action {
	if v.HasPending && (v.WindowOver || v.Bisecting || v.SinceBatch >= ReplanInterval) {
		return Build
	}
	return Wait
}
