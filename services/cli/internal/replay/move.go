package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// MoveTaskAPI is the part of the SQS client that moves whole queues.
type MoveTaskAPI interface {
	StartMessageMoveTask(context.Context, *sqs.StartMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error)
	ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error)
	CancelMessageMoveTask(context.Context, *sqs.CancelMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error)
}

// RateMax is the highest rate of a message move task, in messages per second
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html).
const RateMax = 500

const (
	// pollInterval is the time between two reads of the state.
	pollInterval = 500 * time.Millisecond
	// cancelTimeout bounds the wait for the end after a cancellation.
	cancelTimeout = 15 * time.Second
)

// The states of a message move task.
const (
	running    = "RUNNING"
	cancelling = "CANCELLING"
	completed  = "COMPLETED"
	cancelled  = "CANCELLED"
)

// Mover moves a whole DLQ.
type Mover struct {
	Tasks MoveTaskAPI
	// From and To are ARNs. To is required, because SQS does not know the source of a message
	// that a host parked.
	From, To string
	Rate     int
	Pause    func(ctx context.Context, d time.Duration) error
	Report   func(moved int)
}

// MoveAll starts a message move task and waits until it has ended. If ctx ends, it cancels the
// task; each message is then in exactly one of the queues.
func (m Mover) MoveAll(ctx context.Context) (Outcome, error) {
	latest, err := m.latestTask(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if aws.ToString(latest.Status) == running {
		return Outcome{}, fault.F("moving DLQ messages", fault.Conflict, "a message move task, started at %s, is already running", time.UnixMilli(latest.StartedTimestamp).UTC().Format(time.RFC3339)).
			WithHint("wait until it ends, or aws sqs cancel-message-move-task --task-handle %s", aws.ToString(latest.TaskHandle))
	}
	started, err := m.Tasks.StartMessageMoveTask(context.WithoutCancel(ctx), &sqs.StartMessageMoveTaskInput{
		SourceArn: &m.From, DestinationArn: &m.To, MaxNumberOfMessagesPerSecond: aws.Int32(int32(min(m.Rate, RateMax))),
	})
	if err != nil {
		return Outcome{}, awsfault.WriteCall("starting the message move task", "sqs:StartMessageMoveTask").Wrap(err)
	}
	return m.followTask(ctx, aws.ToString(started.TaskHandle))
}

// followTask waits until the task has ended.
func (m Mover) followTask(ctx context.Context, handle string) (Outcome, error) {
	var out Outcome
	for {
		if m.Pause(ctx, pollInterval) != nil {
			return m.cancelTask(ctx, handle)
		}
		task, err := m.latestTask(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return m.cancelTask(ctx, handle)
			}
			return out, fmt.Errorf("the message move task continues in SQS: %w", err)
		}
		out.Replayed = int(task.ApproximateNumberOfMessagesMoved)
		m.Report(out.Replayed)
		switch status := aws.ToString(task.Status); status {
		case running, cancelling:
		case completed:
			return out, nil
		case cancelled:
			out.Interrupted = true
			return out, nil
		default:
			return out, fault.F("moving DLQ messages", fault.Retry, "the message move task ended in state %s after %d messages: %s", status, out.Replayed, aws.ToString(task.FailureReason)).
				WithHint("run the command again to move the rest")
		}
	}
}

// cancelTask cancels the task and waits until it has ended.
func (m Mover) cancelTask(ctx context.Context, handle string) (Outcome, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	out := Outcome{Interrupted: true}
	_, err := m.Tasks.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
	// A task that has ended meanwhile cannot be cancelled.
	if err != nil && awsfault.ErrorCode(err) != "ResourceNotFoundException" {
		return out, fmt.Errorf("the message move task may continue in SQS: %w", awsfault.WriteCall("cancelling the message move task", "sqs:CancelMessageMoveTask").Wrap(err))
	}
	for {
		task, err := m.latestTask(ctx)
		if err != nil {
			return out, err
		}
		out.Replayed = int(task.ApproximateNumberOfMessagesMoved)
		switch aws.ToString(task.Status) {
		case running, cancelling:
		case completed:
			out.Interrupted = false
			return out, nil
		default:
			return out, nil
		}
		if err := m.Pause(ctx, pollInterval); err != nil {
			return out, fmt.Errorf("waiting for the end of the cancelled task: %w", err)
		}
	}
}

// latestTask returns the latest task of the queue, or a zero value.
func (m Mover) latestTask(ctx context.Context) (types.ListMessageMoveTasksResultEntry, error) {
	listed, err := m.Tasks.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &m.From, MaxResults: aws.Int32(1)})
	if err != nil {
		return types.ListMessageMoveTasksResultEntry{}, awsfault.ReadCall("listing message move tasks", "sqs:ListMessageMoveTasks").Wrap(err)
	}
	if len(listed.Results) == 0 {
		return types.ListMessageMoveTasksResultEntry{}, nil
	}
	return listed.Results[0], nil
}
