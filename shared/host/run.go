package host

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// LambdaVariable is the variable by which a process knows that it runs under
// Lambda.
const LambdaVariable = "AWS_LAMBDA_RUNTIME_API"

// RuntimeEnvironment is what the environment says about where the process runs.
type RuntimeEnvironment struct {
	// Lambda is the value of LambdaVariable.
	Lambda string
	// QueueURL is the queue to poll elsewhere, and QueueVariable how it is set.
	QueueURL, QueueVariable string
}

// Run chooses the host: under Lambda the one, with a queue to poll the other,
// and otherwise nothing can be done.
func Run(ctx context.Context, place RuntimeEnvironment, lambda, poll func(ctx context.Context) error) error {
	switch {
	case place.Lambda != "":
		return lambda(ctx)
	case place.QueueURL != "":
		return poll(ctx)
	default:
		return fault.E("choosing a host", fault.Invalid, errors.New("neither "+LambdaVariable+" nor "+place.QueueVariable+" is set")).
			WithHint("run this as a Lambda function, which sets the first, or set %s to the URL of the queue to poll", place.QueueVariable)
	}
}

// RefusalReason is why a function refuses a record before any handler sees it.
type RefusalReason string

const (
	// UnknownQueue is a record of a queue that the function does not work on.
	UnknownQueue RefusalReason = "queue"
	// UnknownReceipt is a record with a receipt that SQS does not know: it was received
	// again or deleted meanwhile, or it never lay in the queue.
	UnknownReceipt RefusalReason = "receipt"
	// UncheckedReceipt is a record whose receipt could not be checked.
	UncheckedReceipt RefusalReason = "unchecked"
)

// LambdaOptions say what the Lambda host needs. They are here so that a service can
// be wired without linking Lambda's runtime.
type LambdaOptions struct {
	// FindWorker gives the worker of the queue that an event source ARN names, with that
	// queue.
	FindWorker func(arn string) (Worker, error)
	// OnRefused is called with each message that is refused before any handler sees it, and
	// with the event source ARN of its record. It may be nil.
	OnRefused func(arn string, m queue.Message, why RefusalReason, err error)
	// Margin, 5 s by default, is what is kept of the function's time to carry
	// out verdicts, and what the visibility has beyond the function's end.
	Margin time.Duration
	// AfterInvocation is called at the end of each invocation, when the process may be
	// frozen: telemetry that waits to be sent must go now. Nil does nothing.
	AfterInvocation func(ctx context.Context)
}
