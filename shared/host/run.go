package host

import (
	"context"
	"errors"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// LambdaVariable is the environment variable that is set in a process under Lambda.
const LambdaVariable = "AWS_LAMBDA_RUNTIME_API"

// RuntimeEnvironment holds the environment variables that select the host.
type RuntimeEnvironment struct {
	// Lambda is the value of LambdaVariable.
	Lambda string
	// QueueURL is the queue to poll outside Lambda, and QueueVariable the environment variable that sets it.
	QueueURL, QueueVariable string
}

// Run calls lambda under Lambda and poll if a queue URL is set. Otherwise it returns an Invalid error.
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

// RefusalReason is why a function rejects a record before a handler receives it.
type RefusalReason string

const (
	// UnknownQueue means that the record is of a queue that the function does not serve.
	UnknownQueue RefusalReason = "queue"
	// UnknownReceipt means that SQS does not know the record's receipt. The message was received again or deleted
	// meanwhile, or it was never in the queue.
	UnknownReceipt RefusalReason = "receipt"
	// UncheckedReceipt means that the receipt could not be checked.
	UncheckedReceipt RefusalReason = "unchecked"
)

// LambdaOptions configure the Lambda host. They are declared here so that a service can be wired without linking
// Lambda's runtime.
type LambdaOptions struct {
	// FindWorker returns the worker of the queue that an event source ARN names.
	FindWorker func(arn string) (Worker, error)
	// OnRefused is called for each message that is rejected before a handler receives it, with the event source ARN
	// of its record. It may be nil.
	OnRefused func(arn string, m queue.Message, why RefusalReason, err error)
	// Margin, 5 s by default, is the part of the function's time reserved for applying dispositions and for the response,
	// and how far the visibility timeout extends beyond the function's end.
	Margin time.Duration
	// AfterInvocation is called at the end of each invocation, to flush telemetry before the process may be frozen.
	// The invocation lasts until it returns, so it must return before the context's deadline. It may be nil.
	AfterInvocation func(ctx context.Context)
}
