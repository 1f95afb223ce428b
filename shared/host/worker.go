package host

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Worker applies a handler and the verdict table to the messages of one queue.
// Every host is made of it.
type Worker struct {
	// Service names the worker in logs and dead letters.
	Service string
	Queue   queue.Queue
	// Dead is the dead-letter queue of Queue.
	Dead   queue.Sender
	Handle Handler
	// HandleBatch deals with messages that were received together; nil lets Handle deal
	// with each of them, all at the same time.
	HandleBatch BatchHandler
	// Log takes one line per message; nil logs nothing. The fields of a line are not
	// to be kept.
	Log func(LogLine)
	Now func() time.Time
	// Backoff is how long a message that is to come again stays hidden; nil means
	// Backoff.
	Backoff func(m queue.Message) time.Duration
	// ErrorLog hears of what is wrong with a batch and with no message of it; nil hears
	// nothing.
	ErrorLog *RateLimitedLog
}

// LogLine is the one wide log line of one message.
type LogLine struct {
	Service     string
	LogFields   LogFields
	Message     queue.Message
	Disposition MessageDisposition
	// Start is when the handler was called.
	Start    time.Time
	Duration time.Duration
	// DispositionErr is a failure to carry out the verdict; the message then comes again.
	DispositionErr error
}

// Age is how long the message had waited when its handling began.
func (l LogLine) Age() time.Duration { return l.Start.Sub(l.Message.Sent) }

// ProcessMessage handles one delivery and applies the disposition. The result has the
// disposition, and the error if it could not be applied.
func (w Worker) ProcessMessage(ctx context.Context, m queue.Message) LogLine {
	applyCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispositionTimeout)
	defer cancel()
	return w.processWithin(ctx, applyCtx, m)
}

// dispositionTimeout is how long carrying out a verdict may take. Stopping must not
// undo work that is done, so the verdict outlives the handler's context for that
// while.
const dispositionTimeout = 10 * time.Second

// processWithin calls the handler within one context, and carries out its verdict within
// the other.
func (w Worker) processWithin(ctx, applyCtx context.Context, m queue.Message) LogLine {
	began := w.Now()
	fields := logFieldsContext{Context: ctx}
	err := callHandler(&fields, w.Handle, m)
	verdict := w.decideDisposition(err, m)
	line := LogLine{Service: w.Service, LogFields: fields.fields, Message: m, Disposition: verdict, Start: began, Duration: w.Now().Sub(began)}
	applyCtx, cancel := ensureTime(applyCtx)
	defer cancel()
	line.DispositionErr = w.applyDisposition(applyCtx, m, verdict)
	if w.Log != nil {
		w.Log(line)
	}
	return line
}

// decideDisposition is the verdict table with the worker's own pace.
func (w Worker) decideDisposition(err error, m queue.Message) MessageDisposition {
	verdict := DecideDisposition(err, m)
	if verdict.Action == RetryLater && w.Backoff != nil {
		verdict.RetryAfter = w.Backoff(m)
	}
	return verdict
}

// ensureTime gives time to carry out verdicts where the handler took longer than it
// may.
func ensureTime(applyCtx context.Context) (context.Context, context.CancelFunc) {
	if applyCtx.Err() == nil {
		return applyCtx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(applyCtx), dispositionTimeout)
}

// applyDisposition applies the verdict. A dead letter is sent before the original is
// deleted: a crash between leaves two copies, never none.
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
			return fmt.Errorf("parking a message: %w", err)
		}
		return w.Queue.Delete(ctx, m.Receipt)
	default:
		return nil
	}
}
