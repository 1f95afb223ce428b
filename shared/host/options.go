package host

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// Options configure Poll. Zero values mean the defaults.
type Options struct {
	// MaxConcurrent is how many messages are handled at a time: 10 by default, 1 for a service that is not safe for
	// concurrent use. With a batch handler it is a tenth as many batches, at least one.
	MaxConcurrent int
	// HandleBatch is used if the worker has no HandleBatch.
	HandleBatch BatchHandler
	// Receivers is how many receive calls may be in flight, 1 by default. Each returns at most ten messages, which
	// limits one receiver to ten messages per round trip.
	Receivers int
	// MaxCalls is how many deletes, and how many DLQ sends, may be in flight; waiting ones share calls. Zero,
	// the default, makes one call for each.
	MaxCalls int
	// Deadline is the timeout of a handler's context, one minute by default.
	Deadline time.Duration
	// Visibility is the visibility timeout, 15 s by default. The host extends it each third while the handler runs.
	// So a handler may use its whole deadline, yet a crashed worker hides its messages no longer than this.
	Visibility time.Duration
	// Wait is how long one receive waits for a message: 20 s by default, the SQS maximum.
	Wait time.Duration
	// MaxRetryPause is the longest pause after a failed receive, 30 s by default. Pauses grow, and then they are random
	// values between three fifths of it and all of it.
	MaxRetryPause time.Duration
	// Backoff is used if the worker has no Backoff.
	Backoff func(m queue.Message) time.Duration
	// Grace is how long running handlers may continue after shutdown starts: 20 s by default, which leaves 10 of
	// Kubernetes' 30.
	Grace time.Duration
	// MayReceive reports whether this replica may receive now; nil means always. A standby replica must leave the
	// messages to the leader.
	MayReceive func(ctx context.Context) (bool, error)
	// ErrorLog reports failed receives; nil discards them.
	ErrorLog *RateLimitedLog
	// Heartbeat is called after each call of MayReceive or Receive, also a failed one, and after each message, for the
	// health probe. It is not called while such a call or all handlers hang.
	Heartbeat func()
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = 10
	}
	o.Receivers = max(1, o.Receivers)
	set(&o.Deadline, time.Minute)
	set(&o.Visibility, 15*time.Second)
	set(&o.Wait, 20*time.Second)
	set(&o.MaxRetryPause, 30*time.Second)
	set(&o.Grace, 20*time.Second)
	if o.MayReceive == nil {
		o.MayReceive = func(context.Context) (bool, error) { return true, nil }
	}
	if o.Heartbeat == nil {
		o.Heartbeat = func() {}
	}
	return o
}
