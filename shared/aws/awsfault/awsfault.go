// Package awsfault gives errors of the AWS SDK their kind (package fault) and a hint.
//
// The invariants: a write that may have reached AWS is fault.Unknown, unless AWS rejected it. Rejected calls are
// never Unknown. Only listed codes are definite: a rejection with another code is fault.Rejected, and is retried.
package awsfault

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Call is an API call: its purpose in words, its IAM action, and whether it changes anything.
type Call struct {
	Op     string
	Action string
	Writes bool
}

// ReadCall returns a call that changes nothing.
func ReadCall(op, action string) Call { return Call{Op: op, Action: action} }

// WriteCall returns a call that changes something.
func WriteCall(op, action string) Call { return Call{Op: op, Action: action, Writes: true} }

// Wrap gives an SDK error its kind and hint; nil stays nil.
func (c Call) Wrap(err error) error {
	if err == nil {
		return nil
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fault.E(c.Op, c.localKind(err), err)
	}
	out := fault.E(c.Op, c.responseKind(api, err), err)
	out.Hint = c.findHint(out.Kind, api)
	return out
}

// ErrorCode returns the AWS error code in an error, or "".
func ErrorCode(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// localKind returns the kind of an error without a response from AWS.
func (c Call) localKind(err error) fault.Kind {
	var parameters smithy.InvalidParamsError
	var pointer *smithy.InvalidParamsError
	switch {
	case errors.As(err, &parameters), errors.As(err, &pointer):
		return fault.Invalid
	case !c.Writes || !mayHaveSent(err):
		return fault.Retry
	}
	return fault.Unknown
}

// mayHaveSent reports whether the request may have left this machine: true for errors of sending and of the response,
// and for a cancelled context or a timeout; false for a failed dial and for missing credentials.
func mayHaveSent(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var send *smithyhttp.RequestSendError
	var cancelled *smithy.CanceledError
	var answer *smithyhttp.ResponseError
	var body *smithy.DeserializationError
	return errors.As(err, &send) || errors.As(err, &cancelled) || errors.As(err, &answer) || errors.As(err, &body) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// responseKind returns the kind of an error response. After a server error a write may have happened.
func (c Call) responseKind(api smithy.APIError, err error) fault.Kind {
	kind := KindOf(api.ErrorCode())
	switch {
	case kind != fault.Retry && kind != fault.Rejected:
		return kind
	case kind == fault.Retry || isServerError(api, err):
		if c.Writes && !definiteFailures[api.ErrorCode()] {
			return fault.Unknown
		}
		return fault.Retry
	}
	return fault.Rejected
}

func isServerError(api smithy.APIError, err error) bool {
	var answer *smithyhttp.ResponseError
	return api.ErrorFault() == smithy.FaultServer ||
		errors.As(err, &answer) && answer.HTTPStatusCode() >= http.StatusInternalServerError
}

// notAuthorized finds the action in AWS's message: CreateFleet also needs the permissions of other actions.
var notAuthorized = regexp.MustCompile(`not authorized to perform:? ([a-z0-9-]+:[A-Za-z0-9]+)`)

func (c Call) findHint(kind fault.Kind, api smithy.APIError) string {
	if hint := hints[api.ErrorCode()]; hint != "" {
		return hint
	}
	if kind != fault.Denied {
		return ""
	}
	action := c.Action
	if found := notAuthorized.FindStringSubmatch(api.ErrorMessage()); found != nil {
		action = found[1]
	}
	hint := "allow " + action + " in the IAM policy of this service's role"
	if action != c.Action {
		hint += " (" + c.Action + " needs it too)"
	}
	return hint + "; also look for a service control policy or permissions boundary that denies it"
}
