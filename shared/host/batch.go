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

// BatchHandler handles messages that were received together, for a service that receives thousands per second and can
// share API calls and events between them. It sets each delivery's Err to the error that a Handler would have
// returned.
//
// Each message keeps its own disposition. The worker passes a message to its Handle if the batch handler leaves Err
// at ErrNotBatched, because the message is of another type or because the batch handler panicked. The handler must
// not keep the deliveries after it returns.
type BatchHandler func(ctx context.Context, batch []Delivery)

// Delivery is one message of a batch and the result of handling it.
type Delivery struct {
	Message queue.Message
	// LogFields are the fields of the message's log line. A few fields fit without an allocation. The host reuses the
	// memory once the line is logged.
	LogFields LogFields
	// Err is ErrNotBatched until the handler sets it; nil means success.
	Err error
	// Traceparents are the W3C trace contexts that the message belongs to, for spans of the whole batch. An AWS
	// message may belong to several traces.
	Traceparents []string

	disposition MessageDisposition
	// dispositionErr is the error from applying the disposition.
	dispositionErr error
}

// ErrNotBatched marks a message of a batch that Worker.Handle must handle separately.
var ErrNotBatched = errors.New("this message must be handled separately")

// ProcessMessages handles messages that were received together and applies their dispositions. It returns the log
// lines in the order of the messages.
func (w Worker) ProcessMessages(ctx context.Context, messages []queue.Message) []LogLine {
	applyCtx, cancel := w.newApplyContext(ctx)
	defer cancel()
	lines := make([]LogLine, len(messages))
	var mu sync.Mutex
	w.processAllWithin(ctx, applyCtx, messages, func(at int, line *LogLine) {
		mu.Lock()
		defer mu.Unlock()
		lines[at] = *line
		lines[at].LogFields.Pairs = slices.Clone(line.LogFields.Pairs)
	})
	return lines
}

// processedFunc is called once for each handled message, with its index in the batch. Several goroutines call it, and
// it must not keep the line.
type processedFunc func(at int, line *LogLine)

// processAllWithin is ProcessMessages with the contexts of processWithin.
func (w Worker) processAllWithin(ctx, applyCtx context.Context, messages []queue.Message, done processedFunc) {
	var all sync.WaitGroup
	alone := func(at int) {
		line := w.processWithin(ctx, applyCtx, messages[at])
		done(at, &line)
	}
	switch {
	case w.HandleBatch != nil:
		w.processBatch(ctx, applyCtx, messages, done, func(at int) { all.Go(func() { alone(at) }) })
	case len(messages) == 1:
		alone(0)
	default:
		for at := range messages {
			all.Go(func() { alone(at) })
		}
	}
	all.Wait()
}

// batchPool reuses batchState values: they are large, and there may be a thousand per second.
var batchPool = sync.Pool{New: func() any { return &batchState{} }}

// batchState holds the buffers for processing one batch.
type batchState struct {
	deliveries           []Delivery
	deleted, deadLetters []*Delivery
	separate             []*Delivery
	// receipts is memory for deleteMessages, which empties it first.
	receipts []string
	// fields is the backing array of the deliveries' LogFields.Pairs.
	fields  []any
	logLine LogLine
}

// pairsPerMessage is the capacity of a message's LogFields.Pairs: four names and four values.
const pairsPerMessage = 8

// loadMessages fills the deliveries from messages.
func (b *batchState) loadMessages(messages []queue.Message) {
	n := len(messages)
	b.deliveries, b.fields = slices.Grow(b.deliveries, n)[:n], slices.Grow(b.fields, n*pairsPerMessage)[:n*pairsPerMessage]
	for i := range messages {
		d, from := &b.deliveries[i], i*pairsPerMessage
		d.Message, d.Err, d.LogFields.Pairs = messages[i], ErrNotBatched, b.fields[from:from:from+pairsPerMessage]
	}
}

// processBatch passes messages to the batch handler and calls alone for each message that must be handled separately.
func (w Worker) processBatch(ctx, applyCtx context.Context, messages []queue.Message, done processedFunc, alone func(at int)) {
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
	applyCtx, cancel := w.ensureTime(applyCtx)
	defer cancel()
	w.applyDispositions(applyCtx, b)
	for at := range b.deliveries {
		d := &b.deliveries[at]
		if d.disposition.Action == "" {
			continue // Handled separately.
		}
		b.logLine = LogLine{Service: w.Service, LogFields: d.LogFields, Message: d.Message, Disposition: d.disposition, Start: began, Duration: took, DispositionErr: d.dispositionErr}
		if w.Log != nil {
			w.Log(b.logLine)
		}
		done(at, &b.logLine)
	}
}

// releaseMemory clears the buffers and returns them to the pool.
func (b *batchState) releaseMemory() {
	clear(b.deliveries)
	clear(b.deleted)
	clear(b.deadLetters)
	clear(b.separate)
	clear(b.receipts)
	clear(b.fields)
	*b = batchState{
		deliveries: b.deliveries[:0], deleted: b.deleted[:0], deadLetters: b.deadLetters[:0], separate: b.separate[:0], receipts: b.receipts,
		fields: b.fields[:0],
	}
	batchPool.Put(b)
}

// callBatchHandler calls the batch handler. After a panic it reports the panic; the unfinished messages are then
// handled separately, so the message that causes the panic panics again by itself.
func (w Worker) callBatchHandler(ctx context.Context, batch []Delivery) {
	defer func() {
		r := recover()
		if r == nil || w.ErrorLog == nil {
			return
		}
		w.ErrorLog.Report(w.Now(), fault.F(fmt.Sprintf("handling a batch of %d messages", len(batch)), fault.Bug, "panic: %v\n%s", r, debug.Stack()))
	}()
	w.HandleBatch(ctx, batch)
}

// applyDispositions applies the dispositions of a batch: one call deletes all messages to delete, and one call sends
// all DLQ messages.
func (w Worker) applyDispositions(ctx context.Context, b *batchState) {
	for i := range b.deliveries {
		switch d := &b.deliveries[i]; d.disposition.Action {
		case Delete:
			b.deleted = append(b.deleted, d)
		case MoveToDLQ:
			b.deadLetters = append(b.deadLetters, d)
		case RetryLater:
			b.separate = append(b.separate, d)
		default: // LeaveHidden: nothing to do.
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

// applySeparately applies each disposition with its own calls, concurrently.
func (w Worker) applySeparately(ctx context.Context, batch []*Delivery) {
	var all sync.WaitGroup
	for _, d := range batch {
		all.Go(func() { d.dispositionErr = w.applyDisposition(ctx, d.Message, d.disposition) })
	}
	all.Wait()
}

// deleteMessages deletes messages with one call. If the queue rejects the call as invalid, rejected or denied, it
// deletes each message separately.
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

// sendDeadLetters sends DLQ messages with one call and reports whether it succeeded. After a failure some may have
// been sent; a second copy is harmless.
func (w Worker) sendDeadLetters(ctx context.Context, batch []*Delivery) bool {
	letters := make([]queue.Outgoing, len(batch))
	for i, d := range batch {
		letters[i] = fitToLimit(w.newDeadLetter(d.Message, d.disposition), queue.MaxDeadLetter)
	}
	return w.Dead.Send(ctx, letters...) == nil
}
