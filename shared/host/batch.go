package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
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
// worker's Handle by itself. The deliveries are the host's again when it returns.
type Batch func(ctx context.Context, batch []Delivery)

// Delivery is one message of a batch, and what its handler makes of it.
type Delivery struct {
	Message queue.Message
	// Note is what the message's line says. There is room for a few fields in it,
	// which is the host's again once the line is logged.
	Note Note
	// Err is ErrAlone until the handler says otherwise, nil included.
	Err error
	// Stories are the W3C contexts of the stories that the message is of, for who tells
	// of the batch as a whole; a message of AWS may be of several.
	Stories []string

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
	lines := make([]Line, len(messages))
	var mu sync.Mutex
	w.dealAll(ctx, verdicts, messages, func(at int, line *Line) {
		mu.Lock()
		defer mu.Unlock()
		lines[at] = *line
		lines[at].Note.Fields = slices.Clone(line.Note.Fields)
	})
	return lines
}

// dealt hears of each message, by its place among those that came together, once it
// is dealt with. It is called from several goroutines, and the line is not to be
// kept.
type dealt func(at int, line *Line)

// dealAll is DealAll within contexts like deal's.
func (w Worker) dealAll(ctx, verdicts context.Context, messages []queue.Message, done dealt) {
	var all sync.WaitGroup
	alone := func(at int) {
		line := w.deal(ctx, verdicts, messages[at])
		done(at, &line)
	}
	switch {
	case w.Batch != nil:
		w.dealBatch(ctx, verdicts, messages, done, func(at int) { all.Go(func() { alone(at) }) })
	case len(messages) == 1:
		alone(0)
	default:
		for at := range messages {
			all.Go(func() { alone(at) })
		}
	}
	all.Wait()
}

// batches are used again: they are large, and there may be a thousand a second.
var batches = sync.Pool{New: func() any { return &batch{} }}

// batch is what dealing with a batch needs.
type batch struct {
	deliveries      []Delivery
	deleted, parked []*Delivery
	others          []*Delivery
	receipts        []string
	// fields is room for the notes' fields.
	fields []any
	line   Line
}

// fieldsRoom is how many words a note has room for: four names and their values.
const fieldsRoom = 8

// fill makes deliveries of messages.
func (b *batch) fill(messages []queue.Message) {
	n := len(messages)
	b.deliveries, b.fields = slices.Grow(b.deliveries, n)[:n], slices.Grow(b.fields, n*fieldsRoom)[:n*fieldsRoom]
	for i := range messages {
		d, from := &b.deliveries[i], i*fieldsRoom
		d.Message, d.Err, d.Note.Fields = messages[i], ErrAlone, b.fields[from:from:from+fieldsRoom]
	}
}

// dealBatch gives messages to the batch handler, and names those that are to be
// dealt with alone.
func (w Worker) dealBatch(ctx, verdicts context.Context, messages []queue.Message, done dealt, alone func(at int)) {
	b := batches.Get().(*batch)
	defer b.free()
	b.fill(messages)
	began := w.Now()
	w.handleBatch(ctx, b.deliveries)
	took := w.Now().Sub(began)
	for at := range b.deliveries {
		if d := &b.deliveries[at]; errors.Is(d.Err, ErrAlone) {
			alone(at)
		} else {
			d.verdict = w.judge(d.Err, d.Message)
		}
	}
	verdicts, cancel := inTime(verdicts)
	defer cancel()
	w.settle(verdicts, b)
	for at := range b.deliveries {
		d := &b.deliveries[at]
		if d.verdict.Action == "" {
			continue // It is dealt with alone.
		}
		b.line = Line{Service: w.Service, Note: d.Note, Message: d.Message, Verdict: d.verdict, Began: began, Took: took, Err: d.undone}
		if w.Log != nil {
			w.Log(b.line)
		}
		done(at, &b.line)
	}
}

// free lets another use the memory, and keeps nothing of what was in it.
func (b *batch) free() {
	clear(b.deliveries)
	clear(b.deleted)
	clear(b.parked)
	clear(b.others)
	clear(b.receipts)
	clear(b.fields)
	*b = batch{
		deliveries: b.deliveries[:0], deleted: b.deleted[:0], parked: b.parked[:0], others: b.others[:0], receipts: b.receipts[:0],
		fields: b.fields[:0],
	}
	batches.Put(b)
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
func (w Worker) settle(ctx context.Context, b *batch) {
	for i := range b.deliveries {
		switch d := &b.deliveries[i]; d.verdict.Action {
		case Delete:
			b.deleted = append(b.deleted, d)
		case Park:
			b.parked = append(b.parked, d)
		case Hide:
			b.others = append(b.others, d)
		default: // It is left alone.
		}
	}
	w.remove(ctx, b, b.deleted)
	if len(b.parked) > 1 && w.parkAll(ctx, b.parked) {
		w.remove(ctx, b, b.parked)
	} else {
		b.others = append(b.others, b.parked...)
	}
	if len(b.others) > 0 {
		w.each(ctx, b.others)
	}
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
func (w Worker) remove(ctx context.Context, b *batch, deleted []*Delivery) {
	if len(deleted) == 0 {
		return
	}
	b.receipts = b.receipts[:0]
	for _, d := range deleted {
		b.receipts = append(b.receipts, d.Message.Receipt)
	}
	err := w.Queue.Delete(ctx, b.receipts...)
	alone := len(deleted) > 1 && fault.Is(err, fault.Invalid, fault.Rejected, fault.Denied)
	for _, d := range deleted {
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
