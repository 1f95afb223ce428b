// Package lambda is the host for AWS Lambda: it deals with the records of an
// SQS event source, and answers which of them must come again.
//
// It is apart from package host so that the services inside of the cluster do
// not link Lambda's runtime. The invariants:
//
//   - A record is reported as dealt with only when its verdict has been carried
//     out: a dead letter that could not be sent keeps its original.
//   - A record that panics fails alone.
//   - A record is dealt with by the worker of the queue that it names, and by no
//     other; one whose queue has none is refused.
//   - No handler sees a record before SQS has confirmed its receipt: whoever may
//     invoke the function can write any record, and the queue's policy does not
//     apply to that.
//   - A record that comes again is hidden for as long as the verdict says, on
//     that queue.
package lambda

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Options are host.LambdaOptions.
type Options = host.LambdaOptions

// Serve handles invocations until the context ends: Lambda says so by a signal
// once there are none, and a person by Ctrl-C.
func Serve(ctx context.Context, o Options) error {
	// Lambda's own loop never returns; it dies with the process.
	go lambda.StartWithOptions(Handler(o), lambda.WithContext(context.WithoutCancel(ctx)))
	<-ctx.Done()
	return nil
}

// Handler makes a Lambda handler of workers. All records are handled at the same
// time, or by the worker's Batch, for their visibility runs at the same time as well.
func Handler(o Options) func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	if o.Margin <= 0 {
		o.Margin = 5 * time.Second
	}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		if o.After != nil {
			defer o.After(ctx)
		}
		again := make([]bool, len(e.Records))
		var all sync.WaitGroup
		for _, one := range shares(o, e.Records) {
			all.Go(func() { one.handle(ctx, again) })
		}
		all.Wait()
		response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for i, record := range e.Records {
			if again[i] {
				response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		return response, nil
	}
}

// shares are the records of each queue: there is hardly ever more than one.
func shares(o Options, records []events.SQSMessage) map[string]share {
	all := map[string]share{}
	for i, record := range records {
		one := all[record.EventSourceARN]
		one.Options, one.arn = o, record.EventSourceARN
		one.messages, one.places = append(one.messages, message(record)), append(one.places, i)
		all[record.EventSourceARN] = one
	}
	return all
}

// share is what an invocation has of one queue: messages, and the places of their records.
type share struct {
	Options
	arn      string
	messages []queue.Message
	places   []int
}

// handle deals with the records of one queue, and notes which are to come again.
func (s share) handle(ctx context.Context, again []bool) {
	for _, at := range s.places {
		again[at] = true
	}
	w, err := s.Worker(s.arn)
	if err != nil {
		for _, m := range s.messages {
			s.refuse(m, host.StrangeQueue, fmt.Errorf("finding who works on the queue %s: %w", s.arn, err))
		}
		return
	}
	source, visibility := w.Queue, unlimited
	w.Queue = undeleted{source}
	if end, ok := ctx.Deadline(); ok {
		visibility = max(end.Sub(w.Now()), 0) + s.Margin
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-s.Margin))
		defer cancel()
	}
	known := s.confirm(ctx, source, visibility)
	if len(known.messages) == 0 {
		return
	}
	for i, line := range w.DealAll(ctx, known.messages) {
		again[known.places[i]] = line.Err != nil || line.Verdict.Action != host.Delete && line.Verdict.Action != host.Park
	}
}

// unlimited is how long messages are hidden where the invocation has no deadline, which
// Lambda's always have.
const unlimited = time.Minute

// confirm keeps the messages whose receipts SQS knows. The call that asks, one for ten
// messages, also shortens for how long they stay hidden: the queue hides them for several
// times the function's timeout, and if the function dies they need not wait for that.
func (s share) confirm(ctx context.Context, source queue.Queue, visibility time.Duration) share {
	receipts := make([]string, len(s.messages))
	for i, m := range s.messages {
		receipts[i] = m.Receipt
	}
	known := share{Options: s.Options, arn: s.arn}
	for i, err := range source.HideAll(ctx, visibility, receipts...) {
		switch {
		case err == nil:
			known.messages, known.places = append(known.messages, s.messages[i]), append(known.places, s.places[i])
		case fault.Is(err, fault.Missing):
			s.refuse(s.messages[i], host.StrangeReceipt, fmt.Errorf("confirming the receipt of a record: %w", err))
		default:
			s.refuse(s.messages[i], host.Unchecked, fmt.Errorf("confirming the receipt of a record: %w", err))
		}
	}
	return known
}

func (s share) refuse(m queue.Message, why host.Strangeness, err error) {
	if s.Strange != nil {
		s.Strange(s.arn, m, why, err)
	}
}

// undeleted leaves deleting to Lambda, which does it for every record that is
// not reported as failed.
type undeleted struct{ queue.Queue }

func (undeleted) Delete(context.Context, ...string) error { return nil }
