// Package eventbus is queue.Sender over EventBridge.
//
// A message becomes one entry: source, detail-type, detail. PutEvents succeeds even if every entry failed, so each
// entry's result is checked: entries that failed temporarily are sent again, and rejected ones are an error.
// Attributes are not sent.
package eventbus

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// maxCall is the maximum size of one PutEvents in bytes.
	maxCall = queue.MaxBody
	// maxAttempts is how often failed entries are sent. The SDK does not retry them, because their call succeeded.
	maxAttempts = 4
)

type api interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Bus is one EventBridge bus.
type Bus struct {
	client  api
	name    string
	setting string
	pause   func(ctx context.Context, attempt int) error
}

var _ queue.Sender = (*Bus)(nil)

// New returns the bus with that name or ARN. setting is the variable that configures it ("JOIST_BUS"), for the hint
// if the bus does not exist.
func New(config aws.Config, name, setting string) *Bus {
	return &Bus{client: eventbridge.NewFromConfig(awshttp.WithSafeBodies(config)), name: name, setting: setting, pause: pauseBeforeRetry}
}

// Send sends all messages, in as many calls as necessary.
func (b *Bus) Send(ctx context.Context, messages ...queue.Outgoing) error {
	plain := make([]queue.Outgoing, 0, len(messages))
	for _, m := range messages {
		plain = append(plain, queue.Outgoing{Source: m.Source, Type: m.Type, Body: m.Body})
	}
	batches, err := queue.SplitBatches(maxCall, plain...)
	if err != nil {
		return fmt.Errorf("sending to bus %s: %w", b.name, err)
	}
	for _, batch := range batches {
		if err := b.sendBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// sendBatch sends the entries until each is accepted.
func (b *Bus) sendBatch(ctx context.Context, batch []queue.Outgoing) error {
	for attempt := 1; ; attempt++ {
		entries := make([]types.PutEventsRequestEntry, 0, len(batch))
		for _, m := range batch {
			entries = append(entries, types.PutEventsRequestEntry{
				EventBusName: &b.name, Source: aws.String(m.Source), DetailType: aws.String(m.Type), Detail: aws.String(string(m.Body)),
			})
		}
		out, err := b.client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: entries})
		if err != nil {
			return b.wrapError(ctx, err)
		}
		again, err := b.retryMessages(batch, out, attempt)
		if err != nil || len(again) == 0 {
			return err
		}
		if err := b.pause(ctx, attempt); err != nil {
			return fmt.Errorf("sending to bus %s: %w", b.name, err)
		}
		batch = again
	}
}

// retryMessages returns the messages whose entries must be sent again.
func (b *Bus) retryMessages(batch []queue.Outgoing, out *eventbridge.PutEventsOutput, attempt int) ([]queue.Outgoing, error) {
	op := "sending to bus " + b.name
	if len(out.Entries) != len(batch) {
		return nil, fault.F(op, fault.Unknown, "PutEvents returned %d results for %d entries", len(out.Entries), len(batch))
	}
	var again []queue.Outgoing
	for i, entry := range out.Entries {
		if entry.ErrorCode == nil {
			continue
		}
		err := fmt.Errorf("entry of type %s: %s: %s", batch[i].Type, *entry.ErrorCode, aws.ToString(entry.ErrorMessage))
		switch *entry.ErrorCode {
		case "ThrottlingException", "InternalFailure", "InternalException":
			if attempt == maxAttempts {
				return nil, fault.E(op, fault.Retry, err)
			}
			again = append(again, batch[i])
		case "AccessDeniedException":
			return nil, fault.E(op, fault.Denied, err).WithHint("grant events:PutEvents on bus %s to the role of this service", b.name)
		default:
			return nil, fault.E(op, awsfault.KindOf(*entry.ErrorCode), err)
		}
	}
	return again, nil
}

func (b *Bus) wrapError(ctx context.Context, err error) error {
	op := "sending to bus " + b.name
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
	if awsfault.ErrorCode(err) == "ResourceNotFoundException" {
		return fault.E(op, fault.Missing, err).WithHint("create the bus with `cdk deploy`, or correct %s", b.setting)
	}
	return awsfault.WriteCall(op, "events:PutEvents").Wrap(err)
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
