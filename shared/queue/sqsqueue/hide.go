package sqsqueue

import (
	"context"
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

// HideAll changes the visibility of messages, ten per call. It sends an entry again if it failed alone and was not
// the sender's fault.
func (q *Queue) HideAll(ctx context.Context, visibility time.Duration, receipts ...string) []error {
	errs := make([]error, len(receipts))
	if err := q.checkVisibility(visibility); err != nil {
		return fillErrors(errs, err)
	}
	from := 0
	for chunk := range slices.Chunk(receipts, queue.MaxBatch) {
		q.hideChunk(ctx, visibility, chunk, errs[from:from+len(chunk)])
		from += len(chunk)
	}
	return errs
}

func fillErrors(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// hideChunk hides the messages of one call, and sets the error of each.
func (q *Queue) hideChunk(ctx context.Context, visibility time.Duration, receipts []string, errs []error) {
	var entries []types.ChangeMessageVisibilityBatchRequestEntry
	for i := range receipts {
		entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &receipts[i], VisibilityTimeout: toSeconds(visibility),
		})
	}
	for attempt := 1; len(entries) > 0; attempt++ {
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			err = q.wrapError(ctx, "hiding messages of", awsfault.ReadCall("", "sqs:ChangeMessageVisibility"), err)
			for _, e := range entries {
				errs[entryIndex(*e.Id)] = err
			}
			return
		}
		entries = q.retryEntries(entries, out.Failed, attempt, errs)
		if len(entries) > 0 && q.pause(ctx, attempt) != nil {
			attempt = maxAttempts - 1 // The next call fails with the context's error.
		}
	}
}

// entryIndex returns the index in an entry's id, which hideChunk set.
func entryIndex(id string) int {
	i, _ := strconv.Atoi(id)
	return i
}

// retryEntries sets the errors of entries that failed permanently, and returns those to send again.
func (q *Queue) retryEntries(entries []types.ChangeMessageVisibilityBatchRequestEntry, failed []types.BatchResultErrorEntry, attempt int, errs []error) []types.ChangeMessageVisibilityBatchRequestEntry {
	var out []types.ChangeMessageVisibilityBatchRequestEntry
	for _, e := range entries {
		i := slices.IndexFunc(failed, func(f types.BatchResultErrorEntry) bool { return aws.ToString(f.Id) == *e.Id })
		switch {
		case i < 0:
			errs[entryIndex(*e.Id)] = nil
		case isUnknownReceipt(aws.ToString(failed[i].Code), aws.ToString(failed[i].Message)):
			errs[entryIndex(*e.Id)] = fault.F("hiding a message of queue "+q.name, fault.Missing, "%s: %s", aws.ToString(failed[i].Code), aws.ToString(failed[i].Message))
		case failed[i].SenderFault || attempt == maxAttempts:
			errs[entryIndex(*e.Id)] = q.entryError("hiding a message of", failed[i], 1)
		default:
			out = append(out, e)
		}
	}
	return out
}
