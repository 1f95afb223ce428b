package sqsqueue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// maxAttempts is how often failed entries are sent. The SDK does not retry them, because their call succeeded.
const maxAttempts = 4

// Send sends all messages, in as many calls as necessary. The error names the first entry that failed permanently.
func (q *Queue) Send(ctx context.Context, messages ...queue.Outgoing) error {
	batches, err := queue.SplitBatches(maxCall, messages...)
	if err != nil {
		return fmt.Errorf("sending to queue %s: %w", q.name, err)
	}
	for _, batch := range batches {
		entries := make([]types.SendMessageBatchRequestEntry, 0, len(batch))
		for i, m := range batch {
			entries = append(entries, types.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(m.Body)), MessageAttributes: messageAttributes(m),
			})
		}
		call := func(entries []types.SendMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
			out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
			if err != nil {
				return nil, q.wrapError(ctx, "sending to", awsfault.WriteCall("", "sqs:SendMessage"), err)
			}
			return out.Failed, nil
		}
		id := func(e types.SendMessageBatchRequestEntry) string { return *e.Id }
		if err := retryBatch(ctx, q, "sending to", entries, id, call); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes messages, ten per call. It ignores receipts that SQS does not know.
func (q *Queue) Delete(ctx context.Context, receipts ...string) error {
	for chunk := range slices.Chunk(receipts, queue.MaxBatch) {
		entries := make([]types.DeleteMessageBatchRequestEntry, 0, len(chunk))
		for i, receipt := range chunk {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(receipt)})
		}
		call := func(entries []types.DeleteMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
			out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: entries})
			if err != nil {
				return nil, q.wrapError(ctx, "deleting from", awsfault.ReadCall("", "sqs:DeleteMessage"), err)
			}
			return slices.DeleteFunc(out.Failed, func(f types.BatchResultErrorEntry) bool {
				return aws.ToString(f.Code) == "ReceiptHandleIsInvalid"
			}), nil
		}
		id := func(e types.DeleteMessageBatchRequestEntry) string { return *e.Id }
		if err := retryBatch(ctx, q, "deleting from", entries, id, call); err != nil {
			return err
		}
	}
	return nil
}

// retryBatch repeats a batch call until no entry fails, at most maxAttempts times. It stops at an entry that is the
// sender's fault.
func retryBatch[E any](ctx context.Context, q *Queue, doing string, entries []E, id func(E) string,
	call func([]E) ([]types.BatchResultErrorEntry, error)) error {
	for attempt := 1; ; attempt++ {
		failed, err := call(entries)
		if err != nil || len(failed) == 0 {
			return err
		}
		for _, f := range failed {
			if f.SenderFault || attempt == maxAttempts {
				return q.entryError(doing, f, len(failed))
			}
		}
		if err := q.pause(ctx, attempt); err != nil {
			return fmt.Errorf("%s queue %s: %w", doing, q.name, err)
		}
		entries = slices.DeleteFunc(entries, func(e E) bool {
			return !slices.ContainsFunc(failed, func(f types.BatchResultErrorEntry) bool { return aws.ToString(f.Id) == id(e) })
		})
	}
}

// entryError returns the error of an entry. An entry that is the sender's fault was not accepted.
func (q *Queue) entryError(doing string, f types.BatchResultErrorEntry, failed int) error {
	kind := fault.Retry
	if f.SenderFault {
		kind = awsfault.KindOf(aws.ToString(f.Code))
	}
	return fault.F(doing+" queue "+q.name, kind, "entry %s and %d others: %s: %s",
		aws.ToString(f.Id), failed-1, aws.ToString(f.Code), aws.ToString(f.Message))
}

// pauseBeforeRetry waits before the next attempt.
func pauseBeforeRetry(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(attempt*attempt) * 100 * time.Millisecond):
		return nil
	}
}
