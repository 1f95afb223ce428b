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
	// holdTime is how long letters are hidden while they wait for their turn, beside
	// what their pace takes.
	holdTime = time.Minute
	// lookWait is a long poll, so that an empty answer means an empty queue.
	lookWait = time.Second
	// oneTime is how long sending and deleting one letter may take. It is not cut short
	// by an interrupt.
	oneTime = 30 * time.Second
	// missesMax is how often nothing new may come before what was not seen is left.
	missesMax = 3
	// deletes is how often a letter that was sent again is tried to be deleted.
	deletes = 3
)

// Outcome is what a replay did.
type Outcome struct {
	// Replayed counts letters that were sent again and removed.
	Replayed int
	// Unseen are chosen letters that were not met again: somebody else has them in
	// flight, or has replayed them.
	Unseen []string
	// Returned are canaries that died again.
	Returned []deadletter.DeadLetter
	// Doubtful are letters that were, or may have been, sent again and are still there.
	Doubtful []string
	// Interrupted says that somebody asked to stop.
	Interrupted bool
}

// Runner replays letters one by one.
type Runner struct {
	Dead queue.Queue
	To   queue.Sender
	// Reader reads letters that come back.
	Reader deadletter.Reader
	// Rate is the most letters a second.
	Rate int
	// Canary is how many letters go first, and CanaryWait how long it is looked whether
	// they come back dead; none go first if Canary is 0.
	Canary     int
	CanaryWait time.Duration
	// Limit is how many letters are looked at for canaries that came back.
	Limit int
	Now   func() time.Time
	// Pause waits, and returns early with an error if ctx ends.
	Pause func(ctx context.Context, d time.Duration) error
	// Tell hears how many letters are replayed.
	Tell func(replayed int)
}

// errInterrupted ends a replay because somebody asked to stop.
var errInterrupted = errors.New("interrupted")

// resending is one replay under way.
type resending struct {
	Runner
	out Outcome
	// pending are the chosen letters that are still to be sent; known are all that were
	// there when they were chosen.
	pending map[string]deadletter.DeadLetter
	known   map[string]bool
	sent    map[[sha256.Size]byte]bool
	// held are messages that were received on the way and are not ours to send.
	held  []queue.Message
	begun bool
	// total is how many letters are chosen.
	total int
}

// Resend sends the chosen letters again, as many as limit says (0 for all). Known are
// all letters that were there. Where fewer than all are canaries, it looks whether they
// come back before it goes on, or returns. It stops at the first error; what it did
// until then is in the outcome.
func (r Runner) Resend(ctx context.Context, chosen, known []deadletter.DeadLetter, limit int) (Outcome, error) {
	state := &resending{Runner: r, pending: map[string]deadletter.DeadLetter{}, known: map[string]bool{}, sent: map[[sha256.Size]byte]bool{}, total: len(chosen)}
	for _, l := range known {
		state.known[l.ID] = true
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
	if back := deadletter.GiveBack(ctx, r.Dead, state.held); err == nil {
		err = back
	}
	if state.out.Replayed < limit && !state.out.Interrupted && err == nil && len(state.out.Returned) == 0 {
		for _, l := range chosen {
			if _, left := state.pending[l.ID]; left {
				state.out.Unseen = append(state.out.Unseen, l.ID)
			}
		}
	}
	return state.out, err
}

// sendAll sends letters until so many are sent, or none is met any more.
func (r *resending) sendAll(ctx context.Context, limit int) error {
	misses := 0
	for r.out.Replayed < limit && misses < missesMax {
		messages, err := r.Dead.Receive(ctx, queue.MaxBatch, lookWait, holdTime+r.interval()*queue.MaxBatch)
		if ctx.Err() != nil {
			r.held = append(r.held, messages...)
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("receiving dead-letter messages: %w", err)
		}
		before := r.out.Replayed
		if err := r.sendBatch(ctx, messages, limit); err != nil {
			return err
		}
		if misses++; r.out.Replayed > before {
			misses = 0
		}
		if len(r.out.Returned) > 0 {
			return nil
		}
	}
	return nil
}

// interval is the time from one letter to the next.
func (r *resending) interval() time.Duration { return time.Second / time.Duration(r.Rate) }

// sendBatch sends those letters of a batch that are meant, and keeps the others until they
// are given back.
func (r *resending) sendBatch(ctx context.Context, messages []queue.Message, limit int) error {
	for i, m := range messages {
		l, ours := r.pending[m.ID]
		if !ours || r.out.Replayed >= limit {
			r.held = append(r.held, m)
			continue
		}
		if ctx.Err() != nil || r.begun && r.Pause(ctx, r.interval()) != nil {
			r.held = append(r.held, messages[i:]...)
			return errInterrupted
		}
		r.begun = true
		if err := r.sendOne(ctx, m, l); err != nil {
			r.held = append(r.held, messages[i+1:]...)
			return err
		}
		if r.out.Replayed == r.Canary && r.Canary < r.total {
			r.held = append(r.held, messages[i+1:]...)
			return r.pauseOnReturn(ctx)
		}
	}
	return nil
}

// sendOne sends a letter and then deletes it, whether or not somebody interrupts: a letter
// is either here or there.
func (r *resending) sendOne(ctx context.Context, m queue.Message, l deadletter.DeadLetter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneTime)
	defer cancel()
	if err := r.To.Send(ctx, l.Outgoing()); err != nil {
		r.held = append(r.held, m)
		if fault.Is(err, fault.Unknown) {
			r.out.Doubtful = append(r.out.Doubtful, m.ID)
		}
		return fmt.Errorf("sending dead-letter message %s again: %w", m.ID, err)
	}
	delete(r.pending, m.ID)
	r.sent[fingerprint(l)] = true
	var err error
	for range deletes {
		if err = r.Dead.Delete(ctx, m.Receipt); err == nil {
			r.out.Replayed++
			if r.Tell != nil {
				r.Tell(r.out.Replayed)
			}
			return nil
		}
	}
	r.out.Doubtful = append(r.out.Doubtful, m.ID)
	return fmt.Errorf("deleting dead-letter message %s after sending it again: %w", m.ID, err)
}

// fingerprint knows a message again, whatever its id.
func fingerprint(l deadletter.DeadLetter) [sha256.Size]byte { return sha256.Sum256(l.Body()) }

// pauseOnReturn looks for a while whether the canaries come back. Held messages are given back
// first, for they are to be seen as well.
func (r *resending) pauseOnReturn(ctx context.Context) error {
	if err := deadletter.GiveBack(ctx, r.Dead, r.held); err != nil {
		return err
	}
	r.held = nil
	const looks = 3
	for range looks {
		if r.Pause(ctx, r.CanaryWait/looks) != nil {
			return errInterrupted
		}
		messages, _, err := deadletter.Peek(ctx, r.Dead, r.Limit, nil)
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("checking whether canaries returned: %w", err)
		}
		for _, m := range messages {
			l := r.Reader.Read(m, r.Now())
			if !r.known[m.ID] && r.sent[fingerprint(l)] {
				r.out.Returned = append(r.out.Returned, l)
			}
		}
		if len(r.out.Returned) > 0 {
			return nil
		}
	}
	return nil
}

// Complete reports whether it did what it was asked to, which is to replay so many.
func (o Outcome) Complete(asked int) bool {
	return o.Replayed >= asked && !o.Interrupted && len(o.Returned) == 0
}
