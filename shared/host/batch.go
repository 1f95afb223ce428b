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

// BatchHandler deals with messages that were received together, for a service that is
// asked thousands of times a second: what it asks and says for them, it asks and
// says once. It sets each delivery's Err to what a Handler would have returned.
//
// Each message stays alone in its fate. One that the batch leaves at ErrAlone,
// because it is of another sort or because the batch panicked, goes through the
// worker's Handle by itself. The deliveries are the host's again when it returns.
type BatchHandler func(ctx context.Context, batch []Delivery)

// Delivery is one message of a batch, and what its handler makes of it.
type Delivery struct {
	Message queue.Message
	// LogFields is what the message's line says. There is room for a few fields in it,
	// which is the host's again once the line is logged.
	LogFields LogFields
	// Err is ErrAlone until the handler says otherwise, nil included.
	Err error
	// Traceparents are the W3C contexts of the stories that the message is of, for who tells
	// of the batch as a whole; a message of AWS may be of several.
	Traceparents []string

	disposition MessageDisposition
	// dispositionErr is a failure to carry out the verdict.
	dispositionErr error
}

// ErrNotBatched says of a message of a batch that it is to be dealt with by itself.
var ErrNotBatched = errors.New("this message is to be dealt with alone")

// ProcessMessages handles messages that were received together and carries out the
// verdicts. The lines come in the order of the messages.
func (w Worker) ProcessMessages(ctx context.Context, messages []queue.Message) []LogLine {
	verdicts, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispositionTimeout)
	defer cancel()
	lines := make([]LogLine, len(messages))
	var mu sync.Mutex
	w.processAllWithin(ctx, verdicts, messages, func(at int, line *LogLine) {
		mu.Lock()
		defer mu.Unlock()
		lines[at] = *line
		lines[at].LogFields.Pairs = slices.Clone(line.LogFields.Pairs)
	})
	return lines
}

// processedFunc hears of each message, by its place among those that came together, once it
// is dealt with. It is called from several goroutines, and the line is not to be
// kept.
type processedFunc func(at int, line *LogLine)

// processAllWithin is DealAll within contexts like deal's.
func (w Worker) processAllWithin(ctx, verdicts context.Context, messages []queue.Message, done processedFunc) {
	var all sync.WaitGroup
	alone := func(at int) {
		line := w.processWithin(ctx, verdicts, messages[at])
		done(at, &line)
	}
	switch {
	case w.HandleBatch != nil:
		w.processBatch(ctx, verdicts, messages, done, func(at int) { all.Go(func() { alone(at) }) })
	case len(messages) == 1:
		alone(0)
	default:
		for at := range messages {
			all.Go(func() { alone(at) })
		}
	}
	all.Wait()
}

// batchPool are used again: they are large, and there may be a thousand a second.
var batchPool = sync.Pool{New: func() any { return &batchState{} }}

// batchState is what dealing with a batch needs.
type batchState struct {
	deliveries           []Delivery
	deleted, deadLetters []*Delivery
	separate             []*Delivery
	receipts             []string
	// fields is room for the notes' fields.
	fields  []any
	logLine LogLine
}

// pairsPerMessage is how many words a note has room for: four names and their values.
const pairsPerMessage = 8

// loadMessages makes deliveries of messages.
func (b *batchState) loadMessages(messages []queue.Message) {
	n := len(messages)
	b.deliveries, b.fields = slices.Grow(b.deliveries, n)[:n], slices.Grow(b.fields, n*pairsPerMessage)[:n*pairsPerMessage]
	for i := range messages {
		d, from := &b.deliveries[i], i*pairsPerMessage
		d.Message, d.Err, d.LogFields.Pairs = messages[i], ErrNotBatched, b.fields[from:from:from+pairsPerMessage]
	}
}

// processBatch gives messages to the batch handler, and names those that are to be
// dealt with alone.
func (w Worker) processBatch(ctx, verdicts context.Context, messages []queue.Message, done processedFunc, alone func(at int)) {
	b := batchPool.Get().(*batchState)
	defer b.releaseMemory()
	b.loadMessages(messages)
	began := w.Now()
	w.callBatchHandler(ctx, b.deliveries)
	took := w.Now().Sub(began)
	for at := range b.deliveries {
		if d := &b.deliveries[at]; errors.Is(d.Err, ErrNotBatched) {
			alone(at)
		} else {
			d.disposition = w.decideDisposition(d.Err, d.Message)
		}
	}
	verdicts, cancel := ensureTime(verdicts)
	defer cancel()
	w.applyDispositions(verdicts, b)
	for at := range b.deliveries {
		d := &b.deliveries[at]
		if d.disposition.Action == "" {
			continue // It is dealt with alone.
		}
		b.logLine = LogLine{Service: w.Service, LogFields: d.LogFields, Message: d.Message, Disposition: d.disposition, Start: began, Duration: took, DispositionErr: d.dispositionErr}
		if w.Log != nil {
			w.Log(b.logLine)
		}
		done(at, &b.logLine)
	}
}

// releaseMemory lets another use the memory, and keeps nothing of what was in it.
func (b *batchState) releaseMemory() {
	clear(b.deliveries)
	clear(b.deleted)
	clear(b.deadLetters)
	clear(b.separate)
	clear(b.receipts)
	clear(b.fields)
	*b = batchState{
		deliveries: b.deliveries[:0], deleted: b.deleted[:0], deadLetters: b.deadLetters[:0], separate: b.separate[:0], receipts: b.receipts[:0],
		fields: b.fields[:0],
	}
	batchPool.Put(b)
}

// callBatchHandler calls the batch handler. Its panic is of the message at which it
// happened, and that one will panic again by itself; one that does not is told of
// here.
func (w Worker) callBatchHandler(ctx context.Context, batch []Delivery) {
	defer func() {
		r := recover()
		if r == nil || w.ErrorLog == nil {
			return
		}
		w.ErrorLog.Report(w.Now(), fault.F(fmt.Sprintf("handling %d messages at once", len(batch)), fault.Bug, "panic: %v\n%s", r, debug.Stack()))
	}()
	w.HandleBatch(ctx, batch)
}

// applyDispositions carries out the verdicts on a batch: with one call for all that are to be
// deleted, and one for all dead letters.
func (w Worker) applyDispositions(ctx context.Context, b *batchState) {
	for i := range b.deliveries {
		switch d := &b.deliveries[i]; d.disposition.Action {
		case Delete:
			b.deleted = append(b.deleted, d)
		case MoveToDLQ:
			b.deadLetters = append(b.deadLetters, d)
		case RetryLater:
			b.separate = append(b.separate, d)
		default: // It is left alone.
		}
	}
	w.deleteMessages(ctx, b, b.deleted)
	if len(b.deadLetters) > 1 && w.sendDeadLetters(ctx, b.deadLetters) {
		w.deleteMessages(ctx, b, b.deadLetters)
	} else {
		b.separate = append(b.separate, b.deadLetters...)
	}
	if len(b.separate) > 0 {
		w.applySeparately(ctx, b.separate)
	}
}

// applySeparately carries out each verdict by itself, all at the same time.
func (w Worker) applySeparately(ctx context.Context, batch []*Delivery) {
	var all sync.WaitGroup
	for _, d := range batch {
		all.Go(func() { d.dispositionErr = w.applyDisposition(ctx, d.Message, d.disposition) })
	}
	all.Wait()
}

// deleteMessages deletes messages with one call. If that is refused because of one of
// them, each is deleted alone.
func (w Worker) deleteMessages(ctx context.Context, b *batchState, deleted []*Delivery) {
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
		if d.dispositionErr = err; alone {
			d.dispositionErr = w.Queue.Delete(ctx, d.Message.Receipt)
		}
	}
}

// sendDeadLetters sends dead letters with one call, and reports whether they were taken.
// Some may have been: a second copy is harmless.
func (w Worker) sendDeadLetters(ctx context.Context, batch []*Delivery) bool {
	letters := make([]queue.Outgoing, len(batch))
	for i, d := range batch {
		letters[i] = fitToLimit(w.newDeadLetter(d.Message, d.disposition), queue.MaxDeadLetter)
	}
	return w.Dead.Send(ctx, letters...) == nil
}
