package host

import (
	"context"
	"errors"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// LambdaVariable is the variable by which a process knows that it runs under
// Lambda.
const LambdaVariable = "AWS_LAMBDA_RUNTIME_API"

// Place is what the environment says about where the process runs.
type Place struct {
	// Lambda is the value of LambdaVariable.
	Lambda string
	// QueueURL is the queue to poll elsewhere, and QueueVariable how it is set.
	QueueURL, QueueVariable string
}

// Run chooses the host: under Lambda the one, with a queue to poll the other,
// and otherwise nothing can be done.
func Run(ctx context.Context, place Place, lambda, poll func(ctx context.Context) error) error {
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
