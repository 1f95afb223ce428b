package host

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// defaultMinPause is the least pause after a step during which changes gather. Without it
// a cluster in turmoil would be looked at after every single change. A step that
// takes longer is followed by a pause as long as itself, so that at least half of
// the time is left to the messages that wait at the same Gate; the pause after one
// that takes very long, as before an API server that hardly answers, is maxPauseAfterReconcile.
const (
	defaultMinPause        = 100 * time.Millisecond
	maxPauseAfterReconcile = 10 * time.Second
)

// Loop calls a step again and again: soon after something has changed, and at
// least every Pace. It is the host of the services inside the cluster, which
// read what must happen off the objects each time. A step that fails or panics
// is told and called again; the loop ends with its context alone.
type Loop struct {
	Reconcile func(ctx context.Context) error
	Interval  time.Duration
	// Changed says that there may be something new. Any number of changes
	// before a step are one; nil means that only Pace counts.
	Changed <-chan struct{}
	// NextDue is asked after each step when the next one is due although nothing
	// changes: the end of a window, say. The zero time, and a nil NextDue, leave it to
	// Pace. A time that has passed already has waited for the rest like any other.
	NextDue func() time.Time
	// MinPause is asked after each step for the least pause, where the usual tenth of a
	// second is not what suits; nil leaves it to that.
	MinPause func() time.Duration
	// Timeout bounds one step; zero means a minute.
	Timeout time.Duration
	// ErrorLog hears of steps that went wrong; nil hears nothing.
	ErrorLog *RateLimitedLog
	// OnReconciled is called after each step; nil is not.
	OnReconciled func(took time.Duration, err error)
}

// Run steps until the context ends, and returns nil.
func (l Loop) Run(ctx context.Context) error {
	if l.Timeout <= 0 {
		l.Timeout = time.Minute
	}
	for ctx.Err() == nil {
		l.waitForNext(ctx, l.reconcileOnce(ctx))
	}
	return nil
}

func (l Loop) reconcileOnce(ctx context.Context) (took time.Duration) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	err := l.callReconcile(limited)
	if ctx.Err() != nil {
		// What fails because we stop is no trouble.
		return 0
	}
	took = time.Since(began)
	l.ErrorLog.Report(time.Now(), err)
	if l.OnReconciled != nil {
		l.OnReconciled(took, err)
	}
	return took
}

// callReconcile calls the step and turns a panic into a bug, with its stack.
func (l Loop) callReconcile(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("looking at the cluster", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	if err := l.Reconcile(ctx); err != nil {
		return fmt.Errorf("looking at the cluster: %w", err)
	}
	return nil
}

// waitForNext rests after a step that took so long, then waits for a change, for Pace to
// pass since the step ended, or for what Next named. That may cut the least rest
// short, but not the half of the time that others have.
func (l Loop) waitForNext(ctx context.Context, took time.Duration) {
	pause := l.nextInterval()
	pace := time.NewTimer(pause)
	defer pace.Stop()
	rest := time.NewTimer(max(min(l.minPause(), pause), min(took, maxPauseAfterReconcile)))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return
	case <-rest.C:
	}
	select {
	case <-ctx.Done():
	case <-pace.C:
	case <-l.Changed:
	}
	l.dropChanges()
}

func (l Loop) minPause() time.Duration {
	if l.MinPause == nil {
		return defaultMinPause
	}
	return l.MinPause()
}

// nextInterval is how long to wait when nothing changes.
func (l Loop) nextInterval() time.Duration {
	if l.NextDue == nil {
		return l.Interval
	}
	switch due := l.NextDue(); {
	case due.IsZero():
		return l.Interval
	case !due.After(time.Now()):
		// The step that was due did not do what it was due for. Trying again and
		// again at once would be all that the process does.
		return min(defaultMinPause, l.Interval)
	default:
		return min(time.Until(due), l.Interval)
	}
}

// dropChanges drops the changes that were told so far.
func (l Loop) dropChanges() {
	// A channel with room holds changes that the coming step sees anyway.
	for {
		select {
		case _, open := <-l.Changed:
			if !open {
				return
			}
		default:
			return
		}
	}
}
