// Package sqsqueue is queue.Queue over SQS.
//
// It splits calls to ten messages and 1 MiB, retries entries of a batch that failed alone, and returns errors with
// their kind and a hint. SQS counts visibility in whole seconds; they are rounded up. A receive with a visibility of
// zero uses one second, because the API cannot distinguish zero from the queue's default.
package sqsqueue

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// maxCall is the maximum size of one SendMessageBatch in bytes.
	maxCall = 1 << 20
	// maxWait is the longest long poll.
	maxWait = 20 * time.Second
)

// api is the part of the SDK that the package uses.
type api interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Queue is one SQS queue.
type Queue struct {
	client  api
	url     string
	name    string
	setting string
	pause   func(ctx context.Context, attempt int) error
}

var _ queue.Queue = (*Queue)(nil)

// New returns the queue at url. setting is the variable that configures it ("JOIST_QUEUE_URL"), for the hint if the
// queue does not exist.
func New(config aws.Config, url, setting string) *Queue {
	return &Queue{client: sqs.NewFromConfig(awshttp.WithSafeBodies(config)), url: url, name: path.Base(url), setting: setting, pause: pauseBeforeRetry}
}

// noRetries disables the SDK's retries: receivers retry by themselves, and the SDK must not sleep in between.
func noRetries(o *sqs.Options) { o.RetryMaxAttempts = 1 }

// Receive makes one call, which waits up to wait for a message.
func (q *Queue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	if limit < 1 || limit > queue.MaxBatch || visibility < 0 || visibility > queue.MaxVisibility {
		return nil, fault.F("receiving from queue "+q.name, fault.Invalid, "max %d, visibility %s", limit, visibility)
	}
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:              &q.url,
		MaxNumberOfMessages:   int32(limit),
		WaitTimeSeconds:       toSeconds(min(wait, maxWait)),
		VisibilityTimeout:     max(1, toSeconds(visibility)),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp,
		},
	}, noRetries)
	if err != nil {
		return nil, q.wrapError(ctx, "receiving from", awsfault.ReadCall("", "sqs:ReceiveMessage"), err)
	}
	messages := make([]queue.Message, 0, len(out.Messages))
	for _, m := range out.Messages {
		messages = append(messages, toMessage(m))
	}
	return messages, nil
}

// Hide changes the visibility of one message. It is idempotent, so a lost response counts as that of a read; the same
// holds for Delete.
func (q *Queue) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	if err := q.checkVisibility(visibility); err != nil {
		return err
	}
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.url, ReceiptHandle: &receipt, VisibilityTimeout: toSeconds(visibility),
	})
	if isReceiptGone(err) {
		return fault.E("hiding a message of queue "+q.name, fault.Missing, err)
	}
	return q.wrapError(ctx, "hiding a message of", awsfault.ReadCall("", "sqs:ChangeMessageVisibility"), err)
}

// checkVisibility rejects a visibility that SQS does not accept.
func (q *Queue) checkVisibility(visibility time.Duration) error {
	if visibility < 0 || visibility > queue.MaxVisibility {
		return fault.F("hiding a message of queue "+q.name, fault.Invalid, "visibility %s is not between 0 and %s", visibility, queue.MaxVisibility)
	}
	return nil
}

// Depth reads the queue's approximate counts. Delayed messages count as hidden.
func (q *Queue) Depth(ctx context.Context) (visible, hidden int, err error) {
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
		},
	})
	if err != nil {
		return 0, 0, q.wrapError(ctx, "measuring", awsfault.ReadCall("", "sqs:GetQueueAttributes"), err)
	}
	counts := map[types.QueueAttributeName]int{}
	for name, text := range out.Attributes {
		if counts[types.QueueAttributeName(name)], err = strconv.Atoi(text); err != nil {
			return 0, 0, fault.E("measuring queue "+q.name, fault.Bug, err)
		}
	}
	return counts[types.QueueAttributeNameApproximateNumberOfMessages],
		counts[types.QueueAttributeNameApproximateNumberOfMessagesNotVisible] +
			counts[types.QueueAttributeNameApproximateNumberOfMessagesDelayed], nil
}

// toSeconds rounds up, so that a message does not become visible too early.
func toSeconds(d time.Duration) int32 {
	return int32((d + time.Second - 1) / time.Second)
}

// wrapError converts an SDK error and sets its kind.
func (q *Queue) wrapError(ctx context.Context, doing string, call awsfault.Call, err error) error {
	op := doing + " queue " + q.name
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
	switch {
	case hasCode(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"):
		return fault.E(op, fault.Missing, err).WithHint("create the queue with `cdk deploy`, or correct %s", q.setting)
	case hasCode(err, "OverLimit", "KmsThrottled"):
		return fault.E(op, fault.Throttled, err)
	case hasCode(err, "KmsAccessDenied"):
		return fault.E(op, fault.Denied, err).WithHint("grant kms:GenerateDataKey and kms:Decrypt on the key of queue %s", q.name)
	}
	call.Op = op
	return call.Wrap(err)
}

// hasCode reports whether the AWS error has one of the codes.
func hasCode(err error, codes ...string) bool {
	return slices.Contains(codes, awsfault.ErrorCode(err))
}
