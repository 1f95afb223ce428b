package replay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// resendVisibility is the visibility timeout of received messages, in addition to the time
	// that the rate requires.
	resendVisibility = time.Minute
	// receiveWait is the time of the long poll, so that an empty answer means an empty queue.
	receiveWait = time.Second
	// sendTimeout bounds sending and deleting one message. An interrupt does not shorten it.
	sendTimeout = 30 * time.Second
	// emptyReceivesMax is the number of consecutive receives without a chosen message after
	// which the replay ends.
	emptyReceivesMax = 3
	// deleteAttempts is the number of attempts to delete a sent message.
	deleteAttempts = 3
	// depthReads is the number of reads, a second apart, of which one must find the work queue empty after the wait for
	// canaries. A queue in use has other messages for moments.
	depthReads = 5
)

// Outcome is the result of a replay.
type Outcome struct {
	// Replayed is the number of messages that were sent and deleted.
	Replayed int
	// NotReceived are the IDs of chosen messages that were not received again: another consumer has
	// them in flight or has handled them.
	NotReceived []string
	// Returned are canaries that returned to the DLQ.
	Returned []deadletter.DeadMessage
	// Unhandled is the approximate number of messages in the work queue after the wait for canaries, which may be among them. It
	// is 0 if the queue was empty.
	Unhandled int
	// PossibleDuplicates are the IDs of messages that may be in both queues.
	PossibleDuplicates []string
	// Interrupted reports that ctx ended before the replay was complete.
	Interrupted bool
}

// TargetQueue receives messages again. Depth returns the approximate number of its visible and of its hidden messages.
type TargetQueue interface {
	queue.Sender
	Depth(ctx context.Context) (visible, hidden int, err error)
}

// Resender sends messages one by one.
type Resender struct {
	DeadQueue queue.Queue
	To        TargetQueue
	// Reader reads messages that return to the DLQ.
	Reader deadletter.Reader
	// Rate is the maximum number of messages per second.
	Rate int
	// Canary is the number of messages to send first, and CanaryWait the time in which the service
	// must handle them. With 0 there are no canaries.
	Canary     int
	CanaryWait time.Duration
	// Limit is the number of messages that are read to find returned canaries.
	Limit int
	Now   func() time.Time
	// Pause waits for d. It returns an error if ctx ends first.
	Pause func(ctx context.Context, d time.Duration) error
	// Report is called with the number of replayed messages; it may be nil.
	Report func(replayed int)
}

// errInterrupted ends a replay after ctx has ended.
var errInterrupted = errors.New("interrupted")

// resendState is the state of one replay.
type resendState struct {
	Resender
	out Outcome
	// pending are the chosen messages that are not yet sent, and knownIDs the IDs of all
	// messages at the time of the choice.
	pending    map[string]deadletter.DeadMessage
	knownIDs   map[string]bool
	sentBodies map[[sha256.Size]byte]bool
	// toRelease are received messages that are not to be sent.
	toRelease []queue.Message
	hasBegun  bool
	// total is the number of chosen messages.
	total int
}

// Resend sends the chosen messages, at most limit of them (0 for all). known are all messages
// of the queue. If there are canaries, Resend stops if one of them returns to the queue, or if they
// may still be in the work queue. It stops at the first error; the outcome has the messages replayed before it.
func (r Resender) Resend(ctx context.Context, chosen, known []deadletter.DeadMessage, limit int) (Outcome, error) {
	state := &resendState{Resender: r, pending: map[string]deadletter.DeadMessage{}, knownIDs: map[string]bool{}, sentBodies: map[[sha256.Size]byte]bool{}, total: len(chosen)}
	for _, l := range known {
		state.knownIDs[l.ID] = true
	}
	for _, l := range chosen {
		state.pending[l.ID] = l
	}
	if limit <= 0 || limit > len(chosen) {
		limit = len(chosen)
	}
	err := state.sendAll(ctx, limit)
	if errors.Is(err, errInterrupted) {
		state.out.Interrupted, err = true, nil
	}
	if releaseErr := deadletter.ReleaseMessages(ctx, r.DeadQueue, state.toRelease); err == nil {
		err = releaseErr
	}
	if state.out.Replayed < limit && !state.out.Interrupted && err == nil && !state.out.hasFailedCanaries() {
		for _, l := range chosen {
			if _, left := state.pending[l.ID]; left {
				state.out.NotReceived = append(state.out.NotReceived, l.ID)
			}
		}
	}
	return state.out, err
}

// sendAll sends messages until limit are sent or no chosen message is received any more.
func (r *resendState) sendAll(ctx context.Context, limit int) error {
	misses := 0
	for r.out.Replayed < limit && misses < emptyReceivesMax {
		messages, err := r.DeadQueue.Receive(ctx, queue.MaxBatch, receiveWait, resendVisibility+r.sendInterval()*queue.MaxBatch)
		if ctx.Err() != nil {
			r.toRelease = append(r.toRelease, messages...)
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("receiving DLQ messages: %w", err)
		}
		before := r.out.Replayed
		if err := r.sendBatch(ctx, messages, limit); err != nil {
			return err
		}
		if misses++; r.out.Replayed > before {
			misses = 0
		}
		if r.out.hasFailedCanaries() {
			return nil
		}
	}
	return nil
}

// sendInterval returns the time between two messages.
func (r *resendState) sendInterval() time.Duration { return time.Second / time.Duration(r.Rate) }

// sendBatch sends the chosen messages of a batch, and adds the others to toRelease.
func (r *resendState) sendBatch(ctx context.Context, messages []queue.Message, limit int) error {
	for i, m := range messages {
		l, isChosen := r.pending[m.ID]
		if !isChosen || r.out.Replayed >= limit {
			r.toRelease = append(r.toRelease, m)
			continue
		}
		if ctx.Err() != nil || r.hasBegun && r.Pause(ctx, r.sendInterval()) != nil {
			r.toRelease = append(r.toRelease, messages[i:]...)
			return errInterrupted
		}
		r.hasBegun = true
		if err := r.sendOne(ctx, m, l); err != nil {
			r.toRelease = append(r.toRelease, messages[i+1:]...)
			return err
		}
		if r.out.Replayed == r.Canary && r.Canary < r.total {
			r.toRelease = append(r.toRelease, messages[i+1:]...)
			return r.watchCanaries(ctx)
		}
	}
	return nil
}

// sendOne sends a message and then deletes it. An interrupt does not stop it in between.
func (r *resendState) sendOne(ctx context.Context, m queue.Message, l deadletter.DeadMessage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	if err := r.To.Send(ctx, l.Outgoing()); err != nil {
		r.toRelease = append(r.toRelease, m)
		if fault.Is(err, fault.Unknown) {
			r.out.PossibleDuplicates = append(r.out.PossibleDuplicates, m.ID)
		}
		return fmt.Errorf("sending DLQ message %s again: %w", m.ID, err)
	}
	delete(r.pending, m.ID)
	r.sentBodies[bodyHash(l)] = true
	var err error
	for range deleteAttempts {
		if err = r.DeadQueue.Delete(ctx, m.Receipt); err == nil {
			r.out.Replayed++
			if r.Report != nil {
				r.Report(r.out.Replayed)
			}
			return nil
		}
	}
	r.out.PossibleDuplicates = append(r.out.PossibleDuplicates, m.ID)
	return fmt.Errorf("deleting DLQ message %s after sending it again: %w", m.ID, err)
}

// bodyHash identifies a message independently of its ID.
func bodyHash(l deadletter.DeadMessage) [sha256.Size]byte { return sha256.Sum256(l.Body()) }

// watchCanaries waits for canaries that return to the DLQ, and then checks that the work queue is empty: only poison returns
// at once, and messages that fail otherwise are retried in the work queue for minutes or hours. It releases the
// received messages first, so that it reads them as well.
func (r *resendState) watchCanaries(ctx context.Context) error {
	if err := deadletter.ReleaseMessages(ctx, r.DeadQueue, r.toRelease); err != nil {
		return err
	}
	r.toRelease = nil
	const reads = 3
	for range reads {
		if r.Pause(ctx, r.CanaryWait/reads) != nil {
			return errInterrupted
		}
		messages, _, err := deadletter.PeekMessages(ctx, r.DeadQueue, r.Limit, nil)
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("checking whether canaries returned: %w", err)
		}
		for _, m := range messages {
			l := r.Reader.Read(m, r.Now())
			if !r.knownIDs[m.ID] && r.sentBodies[bodyHash(l)] {
				r.out.Returned = append(r.out.Returned, l)
			}
		}
		if len(r.out.Returned) > 0 {
			return nil
		}
	}
	return r.countUnhandled(ctx)
}

// countUnhandled counts the messages of the work queue, until it is empty or depthReads counts have found some.
func (r *resendState) countUnhandled(ctx context.Context) error {
	for n := range depthReads {
		if n > 0 && r.Pause(ctx, time.Second) != nil {
			return errInterrupted
		}
		visible, hidden, err := r.To.Depth(ctx)
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("checking whether canaries are handled: %w", err)
		}
		if r.out.Unhandled = visible + hidden; r.out.Unhandled == 0 {
			return nil
		}
	}
	return nil
}

// hasFailedCanaries reports whether canaries returned or may not be handled yet.
func (o Outcome) hasFailedCanaries() bool { return len(o.Returned) > 0 || o.Unhandled > 0 }

// IsComplete reports whether all requested messages were replayed and all canaries were handled.
func (o Outcome) IsComplete(requested int) bool {
	return o.Replayed >= requested && !o.Interrupted && !o.hasFailedCanaries()
}
