// Package awscalls measures the calls of AWS's SDK: each request, and each attempt of it.
//
// The invariants: measuring changes no call and no error, and the labels of a call are bounded, because they are AWS's
// names of services and operations and the HTTP status.
package awscalls

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// MeasuredCall is a request, or one attempt of it.
type MeasuredCall struct {
	// Service and Action are AWS's names: EC2, CreateFleet.
	Service, Action string
	// Code is the HTTP status of the last answer, or 0 without an answer.
	Code     string
	Duration time.Duration
	// Attempts is the number of attempts of a request.
	Attempts int
	// IsThrottled means that AWS throttled the attempt.
	IsThrottled bool
}

// CallHooks receive measurements, from several goroutines.
type CallHooks struct {
	Now                  func() time.Time
	OnRequest, OnAttempt func(MeasuredCall)
}

// Observe returns a configuration whose clients report their calls.
func Observe(config aws.Config, to CallHooks) aws.Config {
	observed := config.Copy()
	observed.APIOptions = append(slices.Clone(config.APIOptions), func(stack *middleware.Stack) error {
		if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("JoistRequestMetrics", to.observeRequest), middleware.After); err != nil {
			return err
		}
		retries := (&retry.Attempt{}).ID()
		if _, ok := stack.Finalize.Get(retries); !ok {
			return nil // A presigned request has no attempts.
		}
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("JoistAttemptMetrics", to.observeAttempt), retries, middleware.After)
	})
	return observed
}

// requestKey is the context key of the *MeasuredCall of a request, which its attempts update.
type requestKey struct{}

func (o CallHooks) observeRequest(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	call, start := &MeasuredCall{Service: awsmiddleware.GetServiceID(ctx), Action: awsmiddleware.GetOperationName(ctx), Code: noAnswer}, o.Now()
	out, metadata, err := next.HandleInitialize(middleware.WithStackValue(ctx, requestKey{}, call), in)
	call.Duration = o.Now().Sub(start)
	o.OnRequest(*call)
	return out, metadata, err
}

func (o CallHooks) observeAttempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	start := o.Now()
	out, metadata, err := next.HandleFinalize(ctx, in)
	if request, ok := middleware.GetStackValue(ctx, requestKey{}).(*MeasuredCall); ok {
		request.Attempts++
		request.Code = statusCode(metadata, err)
		attempt := *request
		attempt.Duration, attempt.Attempts, attempt.IsThrottled = o.Now().Sub(start), 1, awsfault.KindOf(awsfault.ErrorCode(err)) == fault.Throttled
		o.OnAttempt(attempt)
	}
	return out, metadata, err
}

const noAnswer = "0"

func statusCode(metadata middleware.Metadata, err error) string {
	if answer, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
		return strconv.Itoa(answer.StatusCode)
	}
	if failed := (*smithyhttp.ResponseError)(nil); errors.As(err, &failed) {
		return strconv.Itoa(failed.HTTPStatusCode())
	}
	return noAnswer
}
