package host

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// defaultMinPause is the minimum pause after a reconcile, in which changes collect; without it a busy cluster would
// be reconciled after every change. After a slower reconcile the pause is as long as the reconcile, at most
// maxPauseAfterReconcile, so that messages waiting for the same Mutex get half of the time.
const (
	defaultMinPause        = 100 * time.Millisecond
	maxPauseAfterReconcile = 10 * time.Second
)

// Loop calls Reconcile repeatedly: soon after a change, and at least every Interval. Services inside the cluster use
// it; they derive their work from the objects each time. After an error or a panic it reports the error and
// continues. It ends only with its context.
type Loop struct {
	Reconcile func(ctx context.Context) error
	Interval  time.Duration
	// Changed signals that something may have changed. All changes before a reconcile count as one. Nil means that
	// only Interval and NextDue trigger reconciles.
	Changed <-chan struct{}
	// NextDue returns when the next reconcile is due even without a change, for example at the end of a batching
	// window. Loop calls it after each reconcile. A nil NextDue or the zero time leaves it to Interval. If the time
	// has passed, the minimum pause still applies.
	NextDue func() time.Time
	// MinPause returns the minimum pause after a reconcile. Nil means defaultMinPause.
	MinPause func() time.Duration
	// Timeout limits one reconcile; zero means one minute.
	Timeout time.Duration
	// ErrorLog reports failed reconciles; nil discards them.
	ErrorLog *RateLimitedLog
	// OnReconciled is called after each reconcile; it may be nil.
	OnReconciled func(took time.Duration, err error)
}

// Run reconciles until the context ends, and returns nil.
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
		// Errors caused by shutdown are not reported.
		return 0
	}
	took = time.Since(began)
	l.ErrorLog.Report(time.Now(), err)
	if l.OnReconciled != nil {
		l.OnReconciled(took, err)
	}
	return took
}

// callReconcile calls Reconcile and turns a panic into a Bug error with its stack.
func (l Loop) callReconcile(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.F("reconciling", fault.Bug, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	if err := l.Reconcile(ctx); err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	return nil
}

// waitForNext pauses after a reconcile that lasted took. Then it waits for a change, or until nextInterval has passed
// since the reconcile ended. A due time may shorten the minimum pause, but not the pause that matches took.
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

// nextInterval returns how long to wait without a change.
func (l Loop) nextInterval() time.Duration {
	if l.NextDue == nil {
		return l.Interval
	}
	switch due := l.NextDue(); {
	case due.IsZero():
		return l.Interval
	case !due.After(time.Now()):
		// The last reconcile did not complete the work that was due. Pausing avoids a busy loop.
		return min(defaultMinPause, l.Interval)
	default:
		return min(time.Until(due), l.Interval)
	}
}

// dropChanges discards the pending changes.
func (l Loop) dropChanges() {
	// The next reconcile covers all buffered changes.
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
