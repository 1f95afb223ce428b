// Package lambda is the host for AWS Lambda: it handles the records of an SQS event source and returns the records that
// SQS must deliver again.
//
// It is separate from package host so that the services inside the cluster do not link Lambda's runtime. The
// invariants:
//
//   - A record is reported as handled only after its disposition was applied: if a DLQ message
//     could not be sent, its original stays in the queue.
//   - A record whose handler panics fails alone.
//   - A record is handled only by the worker of the queue that it names. A record of an
//     unknown queue is rejected.
//   - A handler receives a record only after SQS has confirmed its receipt: a principal that may
//     invoke the function can forge any record, and the queue's policy does not prevent that.
//   - A record that is retried stays hidden on its queue for as long as its disposition requires.
//   - An invocation ends before the function's timeout, also if SQS does not answer. Otherwise SQS delivers all its records
//     again.
package lambda

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Options is host.LambdaOptions.
type Options = host.LambdaOptions

// Serve handles invocations until the context ends, by Lambda's shutdown signal or Ctrl-C.
func Serve(ctx context.Context, o Options) error {
	limitMemory(os.Getenv)
	// Lambda's own loop never returns; it ends with the process.
	go lambda.StartWithOptions(NewHandler(o), lambda.WithContext(context.WithoutCancel(ctx)))
	<-ctx.Done()
	return nil
}

// limitMemory sets Go's memory limit to nine tenths of the function's memory, as the chart does for pods, unless the user
// sets GOMEMLIMIT: Lambda kills a process that exceeds the memory, also if most of it is garbage.
func limitMemory(getenv func(name string) string) {
	mebibytes, err := strconv.ParseInt(getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err == nil && mebibytes > 0 && getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mebibytes << 20 / 10 * 9)
	}
}

// NewHandler returns a Lambda handler. It handles all records concurrently, or with the worker's HandleBatch, because
// their visibility timeouts also run concurrently.
func NewHandler(o Options) func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	if o.Margin <= 0 {
		o.Margin = 5 * time.Second
	}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		if o.AfterInvocation != nil {
			defer o.AfterInvocation(ctx)
		}
		again := make([]bool, len(e.Records))
		var all sync.WaitGroup
		for _, one := range groupByQueue(o, e.Records) {
			all.Go(func() { one.handleRecords(ctx, again) })
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

// groupByQueue groups the records by event source ARN. There is rarely more than one.
func groupByQueue(o Options, records []events.SQSMessage) map[string]queueRecords {
	all := map[string]queueRecords{}
	for i, record := range records {
		one := all[record.EventSourceARN]
		one.Options, one.arn = o, record.EventSourceARN
		one.messages, one.indexes = append(one.messages, decodeRecord(record)), append(one.indexes, i)
		all[record.EventSourceARN] = one
	}
	return all
}

// queueRecords are the messages of one queue in an invocation, and the indexes of their records.
type queueRecords struct {
	Options
	arn      string
	messages []queue.Message
	indexes  []int
}

// handleRecords handles the records of one queue, and sets again for the records that must be retried.
func (s queueRecords) handleRecords(ctx context.Context, again []bool) {
	for _, at := range s.indexes {
		again[at] = true
	}
	w, err := s.FindWorker(s.arn)
	if err != nil {
		for _, m := range s.messages {
			s.refuseRecord(m, host.UnknownQueue, fmt.Errorf("finding the worker of queue %s: %w", s.arn, err))
		}
		return
	}
	source, visibility := w.Queue, defaultVisibility
	w.Queue = undeletedQueue{source}
	if end, ok := ctx.Deadline(); ok {
		visibility = max(end.Sub(w.Now()), 0) + s.Margin
		w.ApplyBy = end.Add(-responseMargin)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-s.Margin))
		defer cancel()
	}
	known := s.confirmReceipts(ctx, source, visibility)
	if len(known.messages) == 0 {
		return
	}
	for i, line := range w.ProcessMessages(ctx, known.messages) {
		again[known.indexes[i]] = line.DispositionErr != nil || line.Disposition.Action != host.Delete && line.Disposition.Action != host.MoveToDLQ
	}
}

// responseMargin is how long before the end of the invocation applying dispositions ends, so that its response is in time.
const responseMargin = 500 * time.Millisecond

// defaultVisibility is how long messages are hidden if the invocation has no deadline. Lambda always sets one.
const defaultVisibility = time.Minute

// confirmReceipts returns the messages whose receipts SQS knows. The call, one for ten messages, also shortens their
// visibility timeout: the queue hides messages for several times the function's timeout, and a crashed function must
// not delay them that long.
func (s queueRecords) confirmReceipts(ctx context.Context, source queue.Queue, visibility time.Duration) queueRecords {
	receipts := make([]string, len(s.messages))
	for i, m := range s.messages {
		receipts[i] = m.Receipt
	}
	known := queueRecords{Options: s.Options, arn: s.arn}
	for i, err := range source.HideAll(ctx, visibility, receipts...) {
		switch {
		case err == nil:
			known.messages, known.indexes = append(known.messages, s.messages[i]), append(known.indexes, s.indexes[i])
		case fault.Is(err, fault.Missing):
			s.refuseRecord(s.messages[i], host.UnknownReceipt, fmt.Errorf("confirming the receipt of a record: %w", err))
		default:
			s.refuseRecord(s.messages[i], host.UncheckedReceipt, fmt.Errorf("confirming the receipt of a record: %w", err))
		}
	}
	return known
}

func (s queueRecords) refuseRecord(m queue.Message, why host.RefusalReason, err error) {
	if s.OnRefused != nil {
		s.OnRefused(s.arn, m, why, err)
	}
}

// undeletedQueue ignores deletes: Lambda deletes every record that is not reported as failed.
type undeletedQueue struct{ queue.Queue }

func (undeletedQueue) Delete(context.Context, ...string) error { return nil }
