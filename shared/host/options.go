package host

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// Options say how Poll works. Zero values mean the defaults.
type Options struct {
	// MaxConcurrent is how many messages are handled at a time: 10 by default, 1 for
	// a service that is not safe for concurrent use. Where a worker deals with
	// batches, it is a tenth as many batches, at least one.
	MaxConcurrent int
	// HandleBatch is the worker's HandleBatch, where that has none.
	HandleBatch BatchHandler
	// Receivers is how many receives may be under way at a time, 1 by default. A
	// receive brings ten messages at most, so one takes no more than ten for each
	// trip to the queue.
	Receivers int
	// MaxCalls is how many deletes, and how many dead letters, may be under way at a
	// time; those that wait share calls. Zero, the default, lets each make its own.
	MaxCalls int
	// Deadline is how long a handler may take, a minute by default: its context
	// ends then.
	Deadline time.Duration
	// Visibility is how long a message stays hidden at a time, 15 s by default.
	// It is extended at each third while the handler runs, so that a handler may
	// take its whole deadline, and yet a worker that dies hides its messages for
	// no longer than this.
	Visibility time.Duration
	// Wait is how long one receive waits for a message: 20 s, SQS's longest.
	Wait time.Duration
	// MaxRetryPause is the longest pause after a receive that failed, 30 s by default.
	// Pauses grow up to it and vary by a quarter.
	MaxRetryPause time.Duration
	// Backoff is the worker's Backoff, where that has none.
	Backoff func(m queue.Message) time.Duration
	// Grace is how long running handlers may go on once the worker must stop:
	// 20 s, which leaves 10 of Kubernetes' 30.
	Grace time.Duration
	// MayReceive says whether this replica may receive now; nil means always. A
	// replica that does not lead must leave the messages to the one that does.
	MayReceive func(ctx context.Context) (bool, error)
	// ErrorLog hears of receives that failed; nil hears nothing.
	ErrorLog *RateLimitedLog
	// Heartbeat is called whenever the worker has moved, for a health probe.
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
