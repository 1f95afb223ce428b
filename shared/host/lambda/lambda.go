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
//     other; one whose queue has none stays.
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
		for source, places := range bySource(e.Records) {
			all.Go(func() { handle(ctx, o, source, places, e.Records, again) })
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

// bySource are the places of the records of each queue: there is hardly ever more
// than one.
func bySource(records []events.SQSMessage) map[string][]int {
	places := map[string][]int{}
	for i, record := range records {
		places[record.EventSourceARN] = append(places[record.EventSourceARN], i)
	}
	return places
}

// handle deals with the records of one queue, and notes which are to come again.
func handle(ctx context.Context, o Options, arn string, places []int, records []events.SQSMessage, again []bool) {
	messages := make([]queue.Message, len(places))
	for i, at := range places {
		messages[i], again[at] = message(records[at]), true
	}
	w, err := o.Worker(arn)
	if err != nil {
		for _, m := range messages {
			if o.Strange != nil {
				o.Strange(m, fmt.Errorf("finding who works on the queue %s: %w", arn, err))
			}
		}
		return
	}
	source := w.Queue
	w.Queue = undeleted{source}
	if end, ok := ctx.Deadline(); ok {
		hide(ctx, source, messages, max(end.Sub(w.Now()), 0)+o.Margin)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-o.Margin))
		defer cancel()
	}
	for i, line := range w.DealAll(ctx, messages) {
		again[places[i]] = line.Err != nil || line.Verdict.Action != host.Delete && line.Verdict.Action != host.Park
	}
}

// hide shortens for how long messages stay hidden: the queue hides a batch for
// several times the function's timeout. If we die, they need not wait for that; if
// a call fails, that one will.
func hide(ctx context.Context, source queue.Queue, messages []queue.Message, visibility time.Duration) {
	var all sync.WaitGroup
	for _, m := range messages {
		all.Go(func() { _ = source.Hide(ctx, m.Receipt, visibility) })
	}
	all.Wait()
}

// undeleted leaves deleting to Lambda, which does it for every record that is
// not reported as failed.
type undeleted struct{ queue.Queue }

func (undeleted) Delete(context.Context, ...string) error { return nil }
