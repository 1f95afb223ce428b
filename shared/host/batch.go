package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Batch deals with messages that were received together, for a service that is
// asked thousands of times a second: what it asks and says for them, it asks and
// says once. It sets each delivery's Err to what a Handler would have returned.
//
// Each message stays alone in its fate. One that the batch leaves at ErrAlone,
// because it is of another sort or because the batch panicked, goes through the
// worker's Handle by itself.
type Batch func(ctx context.Context, batch []Delivery)

// Delivery is one message of a batch, and what its handler makes of it.
type Delivery struct {
	Message queue.Message
	// Note is what the message's line says.
	Note Note
	// Err is ErrAlone until the handler says otherwise, nil included.
	Err error

	verdict Verdict
	// undone is a failure to carry out the verdict.
	undone error
}

// ErrAlone says of a message of a batch that it is to be dealt with by itself.
var ErrAlone = errors.New("this message is to be dealt with alone")

// DealAll handles messages that were received together and carries out the
// verdicts. The lines come in the order of the messages.
func (w Worker) DealAll(ctx context.Context, messages []queue.Message) []Line {
	verdicts, cancel := context.WithTimeout(context.WithoutCancel(ctx), verdictTime)
	defer cancel()
	lines, at := make([]Line, len(messages)), make(map[string]int, len(messages))
	for i, m := range messages {
		at[m.Receipt] = i
	}
	var mu sync.Mutex
	w.dealAll(ctx, verdicts, messages, func(dealt ...Line) {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range dealt {
			lines[at[line.Message.Receipt]] = line
		}
	})
	return lines
}

// dealAll is DealAll within contexts like deal's. It tells of each message once it
// is dealt with, from several goroutines.
func (w Worker) dealAll(ctx, verdicts context.Context, messages []queue.Message, dealt func(lines ...Line)) {
	if w.Batch != nil {
		messages = w.dealBatch(ctx, verdicts, messages, dealt)
	}
	if len(messages) == 1 {
		dealt(w.deal(ctx, verdicts, messages[0]))
		return
	}
	var all sync.WaitGroup
	for _, m := range messages {
		all.Go(func() { dealt(w.deal(ctx, verdicts, m)) })
	}
	all.Wait()
}

// dealBatch gives messages to the batch handler, and gives back those that are to
// be dealt with alone.
func (w Worker) dealBatch(ctx, verdicts context.Context, messages []queue.Message, dealt func(lines ...Line)) (alone []queue.Message) {
	began := w.Now()
	batch := make([]Delivery, len(messages))
	for i, m := range messages {
		batch[i].Message, batch[i].Err = m, ErrAlone
	}
	w.handleBatch(ctx, batch)
	took := w.Now().Sub(began)
	done := batch[:0]
	for i := range batch {
		d := &batch[i]
		if errors.Is(d.Err, ErrAlone) {
			alone = append(alone, d.Message)
			continue
		}
		d.verdict = w.judge(d.Err, d.Message)
		done = append(done, *d)
	}
	verdicts, cancel := inTime(verdicts)
	defer cancel()
	w.settle(verdicts, done)
	lines := make([]Line, len(done))
	for i := range done {
		d := &done[i]
		lines[i] = Line{Service: w.Service, Note: d.Note, Message: d.Message, Verdict: d.verdict, Began: began, Took: took, Err: d.undone}
		if w.Log != nil {
			w.Log(lines[i])
		}
	}
	if len(lines) > 0 {
		dealt(lines...)
	}
	return alone
}

// handleBatch calls the batch handler. Its panic is of the message at which it
// happened, and that one will panic again by itself; one that does not is told of
// here.
func (w Worker) handleBatch(ctx context.Context, batch []Delivery) {
	defer func() {
		r := recover()
		if r == nil || w.Told == nil {
			return
		}
		w.Told.Happened(w.Now(), fault.F(fmt.Sprintf("handling %d messages at once", len(batch)), fault.Bug, "panic: %v\n%s", r, debug.Stack()))
	}()
	w.Batch(ctx, batch)
}

// settle carries out the verdicts on a batch: with one call for all that are to be
// deleted, and one for all dead letters.
func (w Worker) settle(ctx context.Context, batch []Delivery) {
	var deleted, parked, others []*Delivery
	for i := range batch {
		switch d := &batch[i]; d.verdict.Action {
		case Delete:
			deleted = append(deleted, d)
		case Park:
			parked = append(parked, d)
		case Hide:
			others = append(others, d)
		default: // It is left alone.
		}
	}
	w.remove(ctx, deleted)
	if len(parked) > 1 && w.parkAll(ctx, parked) {
		w.remove(ctx, parked)
	} else {
		others = append(others, parked...)
	}
	w.each(ctx, others)
}

// each carries out each verdict by itself, all at the same time.
func (w Worker) each(ctx context.Context, batch []*Delivery) {
	var all sync.WaitGroup
	for _, d := range batch {
		all.Go(func() { d.undone = w.carryOut(ctx, d.Message, d.verdict) })
	}
	all.Wait()
}

// remove deletes messages with one call. If that is refused because of one of
// them, each is deleted alone.
func (w Worker) remove(ctx context.Context, batch []*Delivery) {
	if len(batch) == 0 {
		return
	}
	receipts := make([]string, len(batch))
	for i, d := range batch {
		receipts[i] = d.Message.Receipt
	}
	err := w.Queue.Delete(ctx, receipts...)
	alone := len(batch) > 1 && fault.Is(err, fault.Invalid, fault.Denied)
	for _, d := range batch {
		if d.undone = err; alone {
			d.undone = w.Queue.Delete(ctx, d.Message.Receipt)
		}
	}
}

// parkAll sends dead letters with one call, and reports whether they were taken.
// Some may have been: a second copy is harmless.
func (w Worker) parkAll(ctx context.Context, batch []*Delivery) bool {
	letters := make([]queue.Outgoing, len(batch))
	for i, d := range batch {
		letters[i] = fit(w.letter(d.Message, d.verdict), queue.MaxDead)
	}
	return w.Dead.Send(ctx, letters...) == nil
}
