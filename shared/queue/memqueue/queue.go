package memqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// QueueOptions are a queue's attributes.
type QueueOptions struct {
	// Visibility is the default visibility timeout for receivers that set none. Receive always sets one; callers over
	// HTTP may not.
	Visibility time.Duration
	// MaxReceives moves a message that was received this often without a delete to DeadLetter, at the next receive;
	// zero disables it.
	MaxReceives int
	// DeadLetter is the name of a queue of the same broker.
	DeadLetter string
	// Retention is how long a message is kept after it was sent; zero is SQS's default of 4 days.
	Retention time.Duration
	// Delay is how long each new message is invisible.
	Delay time.Duration
}

// DefaultRetention is SQS's default retention.
const DefaultRetention = 4 * 24 * time.Hour

func (o QueueOptions) withDefaults() QueueOptions {
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	return o
}

// Queue is one queue. Its exported methods take the broker's lock.
type Queue struct {
	broker  *Broker
	name    string
	options QueueOptions
	order   visibilityHeap
	// inFlight maps the latest receipts to records, and stale those of earlier deliveries.
	inFlight   map[string]*record
	stale      map[string]*record
	nextExpiry time.Time
	stats      Stats
}

var _ queue.Queue = (*Queue)(nil)

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// Options returns the queue's attributes, with the defaults filled in.
func (q *Queue) Options() QueueOptions {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	return q.options
}

// Receive returns up to limit visible messages and hides them. See Options.Idle for the effect of wait.
func (q *Queue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	if limit < 1 || limit > queue.MaxBatch || visibility < 0 || visibility > queue.MaxVisibility {
		return nil, fault.F("receiving from "+q.name, fault.Invalid, "max %d, visibility %s", limit, visibility)
	}
	deadline := q.broker.now().Add(wait)
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("receiving from %s: %w", q.name, err)
		}
		messages, err := q.receiveNow(limit, visibility)
		if err != nil || len(messages) > 0 || q.broker.idle == nil || !q.broker.now().Before(deadline) {
			return messages, err
		}
		until := deadline
		if next := q.NextVisible(); !next.IsZero() && next.Before(until) {
			until = next
		}
		if err := q.broker.idle(ctx, until); err != nil {
			return nil, fmt.Errorf("receiving from %s: %w", q.name, err)
		}
	}
}

// Delete deletes messages. A receipt that is not the latest deletes nothing, except with Faults.StaleWorks.
func (q *Queue) Delete(_ context.Context, receipts ...string) error {
	b := q.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shouldFail(DeleteFailed, b.faults.FailDelete) {
		return fault.F("deleting from "+q.name, fault.Retry, "injected fault: the call failed")
	}
	q.expireMessages()
	for _, receipt := range receipts {
		if r := q.findRecord(receipt, StaleDeleted); r != nil {
			q.removeRecord(r)
			q.stats.Deleted++
		}
	}
	return nil
}

// Hide sets when a message becomes visible. One that is already visible is no longer in flight, and Hide returns
// Missing as for a deleted one, except with Faults.StaleWorks and Faults.StaleIgnored.
func (q *Queue) Hide(_ context.Context, receipt string, visibility time.Duration) error {
	b := q.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	op := "hiding a message of " + q.name
	if visibility < 0 || visibility > queue.MaxVisibility {
		return fault.F(op, fault.Invalid, "visibility %s is not between 0 and %s", visibility, queue.MaxVisibility)
	}
	if b.shouldFail(HideFailed, b.faults.FailHide) {
		return fault.F(op, fault.Retry, "injected fault: the call failed")
	}
	q.expireMessages()
	now := b.now()
	r := q.findRecord(receipt, StaleHidden)
	if r == nil || !r.visible.After(now) {
		if (r != nil || q.stale[receipt] != nil) && b.shouldFail(StaleIgnored, b.faults.StaleIgnored) {
			return nil
		}
		return fault.F(op, fault.Missing, "the receipt belongs to no message in flight")
	}
	q.order.remove(r)
	r.visible = now.Add(visibility)
	q.order.add(r)
	return nil
}

// findRecord returns the message in flight with the receipt, or nil. The fault lets a stale receipt work.
func (q *Queue) findRecord(receipt string, kind Fault) *record {
	if r := q.inFlight[receipt]; r != nil {
		return r
	}
	if r := q.stale[receipt]; r != nil && q.broker.shouldFail(kind, q.broker.faults.StaleWorks) {
		return r
	}
	return nil
}

// HideAll hides the messages one after another.
func (q *Queue) HideAll(ctx context.Context, visibility time.Duration, receipts ...string) []error {
	errs := make([]error, len(receipts))
	for i, receipt := range receipts {
		errs[i] = q.Hide(ctx, receipt, visibility)
	}
	return errs
}

// Depth returns the numbers of visible and hidden messages.
func (q *Queue) Depth(context.Context) (visible, hidden int, err error) {
	s := q.Stats()
	return s.Visible, s.Hidden, nil
}

// NextVisible returns when the next message can be received: now or earlier if one can be already, the zero time if
// the queue is empty.
func (q *Queue) NextVisible() time.Time {
	q.broker.mu.Lock()
	defer q.broker.mu.Unlock()
	q.expireMessages()
	if r := q.order.firstRecord(); r != nil {
		return r.visible
	}
	return time.Time{}
}
