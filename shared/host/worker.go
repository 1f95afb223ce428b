package host

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Worker applies a handler and DecideDisposition to the messages of one queue. Every host is built on it.
type Worker struct {
	// Service is the service's name in logs and DLQ messages.
	Service string
	Queue   queue.Queue
	// Dead is the DLQ of Queue.
	Dead   queue.Sender
	Handle Handler
	// HandleBatch handles messages that were received together. If it is nil, Handle handles each of them,
	// concurrently.
	HandleBatch BatchHandler
	// Log receives one line per message and must not keep the line's fields. It may be nil.
	Log func(LogLine)
	Now func() time.Time
	// Backoff returns how long a message to retry stays hidden; nil means the function Backoff.
	Backoff func(m queue.Message) time.Duration
	// ErrorLog reports errors of a batch that belong to no single message; nil discards them.
	ErrorLog *RateLimitedLog
	// ApplyBy is when applying dispositions must end, because the process may not run longer. The zero time leaves it to
	// dispositionTimeout.
	ApplyBy time.Time
}

// LogLine is the log line of one message.
type LogLine struct {
	Service     string
	LogFields   LogFields
	Message     queue.Message
	Disposition MessageDisposition
	// Start is when the handler was called.
	Start    time.Time
	Duration time.Duration
	// DispositionErr is the error from applying the disposition; the message is then received again.
	DispositionErr error
}

// Age returns how long the message had waited when its handling began.
func (l LogLine) Age() time.Duration { return l.Start.Sub(l.Message.Sent) }

const (
	// RetryLimit is the age at which a message that is retried is overdue. Interruption asks EC2 for as long about an
	// instance that EC2 does not return yet.
	RetryLimit = 2 * time.Minute
	// minOverdueReceives is the receive count from which a message can be overdue. SQS's own metric, the age of the oldest
	// message, leaves a message out from its third receive on
	// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html).
	minOverdueReceives = 3
)

// IsOverdue reports whether the message has failed for too long: it is retried although it is older than RetryLimit, or
// it expired after it had been received several times.
func (l LogLine) IsOverdue() bool {
	if l.Message.Receives < minOverdueReceives || l.Message.Sent.IsZero() {
		return false
	}
	return l.Disposition.Action == RetryLater && l.Age() >= RetryLimit || l.Disposition.Kind == fault.Stale
}

// ProcessMessage handles one message and applies its disposition. The result holds the disposition, and the error if
// it could not be applied.
func (w Worker) ProcessMessage(ctx context.Context, m queue.Message) LogLine {
	applyCtx, cancel := w.newApplyContext(ctx)
	defer cancel()
	return w.processWithin(ctx, applyCtx, m)
}

// dispositionTimeout is how long applying a disposition may take, if ApplyBy is not earlier. The disposition may outlive the handler's context
// by this time, so that shutdown does not undo finished work.
const dispositionTimeout = 10 * time.Second

// newApplyContext returns a context for applying dispositions. It ends after dispositionTimeout or at ApplyBy, and not
// with ctx.
func (w Worker) newApplyContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(dispositionTimeout)
	if !w.ApplyBy.IsZero() && w.ApplyBy.Before(end) {
		end = w.ApplyBy
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// processWithin calls the handler with ctx and applies its disposition with applyCtx.
func (w Worker) processWithin(ctx, applyCtx context.Context, m queue.Message) LogLine {
	began := w.Now()
	fields := logFieldsContext{Context: ctx}
	err := callHandler(&fields, w.Handle, m)
	disposition := w.decideDisposition(err, m)
	line := LogLine{Service: w.Service, LogFields: fields.fields, Message: m, Disposition: disposition, Start: began, Duration: w.Now().Sub(began)}
	applyCtx, cancel := w.ensureTime(applyCtx)
	defer cancel()
	line.DispositionErr = w.applyDisposition(applyCtx, m, disposition)
	if w.Log != nil {
		w.Log(line)
	}
	return line
}

// decideDisposition is DecideDisposition with the worker's own Backoff.
func (w Worker) decideDisposition(err error, m queue.Message) MessageDisposition {
	disposition := DecideDisposition(err, m)
	if disposition.Action == RetryLater && w.Backoff != nil {
		disposition.RetryAfter = w.Backoff(m)
	}
	return disposition
}

// ensureTime returns a fresh context if the handler used up applyCtx.
func (w Worker) ensureTime(applyCtx context.Context) (context.Context, context.CancelFunc) {
	if applyCtx.Err() == nil {
		return applyCtx, func() {}
	}
	return w.newApplyContext(applyCtx)
}

// applyDisposition applies the disposition. It sends a DLQ message before it deletes the original: a crash in between
// leaves two copies, never zero.
func (w Worker) applyDisposition(ctx context.Context, m queue.Message, v MessageDisposition) error {
	switch v.Action {
	case Delete:
		return w.Queue.Delete(ctx, m.Receipt)
	case RetryLater:
		err := w.Queue.Hide(ctx, m.Receipt, v.RetryAfter)
		if fault.Is(err, fault.Missing) {
			return nil
		}
		return err
	case MoveToDLQ:
		if err := w.sendDeadLetter(ctx, m, v); err != nil {
			return fmt.Errorf("sending a message to the DLQ: %w", err)
		}
		return w.Queue.Delete(ctx, m.Receipt)
	default:
		return nil
	}
}
