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
	// Batch deals with messages that were received together; nil lets Handle deal
	// with each of them, all at the same time.
	Batch Batch
	// Log takes one line per message; nil logs nothing. The fields of a line are not
	// to be kept.
	Log func(Line)
	Now func() time.Time
	// Again is how long a message that is to come again stays hidden; nil means
	// Backoff.
	Again func(m queue.Message) time.Duration
	// Told hears of what is wrong with a batch and with no message of it; nil hears
	// nothing.
	Told *Trouble
}

// Line is the one wide log line of one message.
type Line struct {
	Service string
	Note    Note
	Message queue.Message
	Verdict Verdict
	// Began is when the handler was called.
	Began time.Time
	Took  time.Duration
	// Err is a failure to carry out the verdict; the message then comes again.
	Err error
}

// Age is how long the message had waited when its handling began.
func (l Line) Age() time.Duration { return l.Began.Sub(l.Message.Sent) }

// Do handles one delivery and carries out the verdict on it.
func (w Worker) Do(ctx context.Context, m queue.Message) Verdict {
	return w.Deal(ctx, m).Verdict
}

// Deal is Do for a host that has to know whether the verdict was carried out.
func (w Worker) Deal(ctx context.Context, m queue.Message) Line {
	verdicts, cancel := context.WithTimeout(context.WithoutCancel(ctx), verdictTime)
	defer cancel()
	return w.deal(ctx, verdicts, m)
}

// verdictTime is how long carrying out a verdict may take. Stopping must not
// undo work that is done, so the verdict outlives the handler's context for that
// while.
const verdictTime = 10 * time.Second

// deal calls the handler within one context, and carries out its verdict within
// the other.
func (w Worker) deal(ctx, verdicts context.Context, m queue.Message) Line {
	began := w.Now()
	noted := noted{Context: ctx}
	err := safely(&noted, w.Handle, m)
	verdict := w.judge(err, m)
	line := Line{Service: w.Service, Note: noted.note, Message: m, Verdict: verdict, Began: began, Took: w.Now().Sub(began)}
	verdicts, cancel := inTime(verdicts)
	defer cancel()
	line.Err = w.carryOut(verdicts, m, verdict)
	if w.Log != nil {
		w.Log(line)
	}
	return line
}

// judge is the verdict table with the worker's own pace.
func (w Worker) judge(err error, m queue.Message) Verdict {
	verdict := Judge(err, m)
	if verdict.Action == Hide && w.Again != nil {
		verdict.After = w.Again(m)
	}
	return verdict
}

// inTime gives time to carry out verdicts where the handler took longer than it
// may.
func inTime(verdicts context.Context) (context.Context, context.CancelFunc) {
	if verdicts.Err() == nil {
		return verdicts, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(verdicts), verdictTime)
}

// carryOut applies the verdict. A dead letter is sent before the original is
// deleted: a crash between leaves two copies, never none.
func (w Worker) carryOut(ctx context.Context, m queue.Message, v Verdict) error {
	switch v.Action {
	case Delete:
		return w.Queue.Delete(ctx, m.Receipt)
	case Hide:
		err := w.Queue.Hide(ctx, m.Receipt, v.After)
		if fault.Is(err, fault.Missing) {
			return nil
		}
		return err
	case Park:
		if err := w.park(ctx, m, v); err != nil {
			return fmt.Errorf("parking a message: %w", err)
		}
		return w.Queue.Delete(ctx, m.Receipt)
	default:
		return nil
	}
}
