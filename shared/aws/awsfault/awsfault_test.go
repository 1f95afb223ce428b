package awsfault_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func said(code, message string, status int) error {
	response := &smithyhttp.Response{Response: &http.Response{StatusCode: status}}
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "X", Err: &smithyhttp.ResponseError{
		Response: response, Err: &smithy.GenericAPIError{Code: code, Message: message},
	}}
}

func broken(err error) error {
	return &smithy.OperationError{Err: &smithyhttp.RequestSendError{Err: err}}
}

func TestFault(t *testing.T) {
	for _, test := range []struct {
		name        string
		err         error
		read, write fault.Kind
	}{
		{"nothing", nil, "", ""},
		{"throttled", said("RequestLimitExceeded", "", 503), fault.Throttled, fault.Throttled},
		{"denied", said("UnauthorizedOperation", "", 403), fault.Denied, fault.Denied},
		{"missing by table", said("NoSuchEntity", "", 404), fault.Missing, fault.Missing},
		{"missing by shape", said("InvalidFlurb.NotFound", "", 400), fault.Missing, fault.Missing},
		{"taken by shape", said("InvalidLaunchTemplateName.AlreadyExistsException", "", 400), fault.Conflict, fault.Conflict},
		{"mismatch", said("IdempotentParameterMismatch", "", 400), fault.Conflict, fault.Conflict},
		{"refused", said("InvalidParameterValue", "", 400), fault.Invalid, fault.Invalid},
		{"terminated by token", said("IdempotentInstanceTerminated", "", 400), fault.Conflict, fault.Conflict},
		{"malformed by shape", said("InvalidAMIID.Malformed", "", 400), fault.Invalid, fault.Invalid},
		{"a quota by shape", said("VcpuLimitExceeded", "", 400), fault.Invalid, fault.Invalid},
		{"unsupported by shape", said("UnsupportedOperation", "", 400), fault.Invalid, fault.Invalid},
		{"in use, by shape", said("InvalidIPAddress.InUse", "", 400), fault.Rejected, fault.Rejected},
		{"two writers of tags", said("ConcurrentTagAccess", "", 400), fault.Rejected, fault.Rejected},
		{"a state that passes", said("IncorrectInstanceState", "", 400), fault.Rejected, fault.Rejected},
		{"a code of tomorrow", said("TooManyCoffees", "", 400), fault.Rejected, fault.Rejected},
		{"no code", said("", "", 400), fault.Rejected, fault.Rejected},
		{"SQS, by its older name", said("AWS.SimpleQueueService.BatchRequestTooLong", "", 400), fault.Invalid, fault.Invalid},
		{"no capacity, from a server", said("InsufficientInstanceCapacity", "", 500), fault.Invalid, fault.Invalid},
		{"server, by code", said("InternalError", "", 500), fault.Retry, fault.Unknown},
		{"server, by status", said("Flurb", "", 502), fault.Retry, fault.Unknown},
		{"expired credentials", said("RequestExpired", "", 400), fault.Retry, fault.Retry},
		{"connection lost", broken(errors.New("EOF")), fault.Retry, fault.Unknown},
		{"never connected", broken(&net.OpError{Op: "dial", Err: errors.New("refused")}), fault.Retry, fault.Retry},
		{"cancelled", &smithy.CanceledError{Err: context.Canceled}, fault.Retry, fault.Unknown},
		{"timed out", fmt.Errorf("x: %w", context.DeadlineExceeded), fault.Retry, fault.Unknown},
		{"answer cut off", &smithy.DeserializationError{Err: errors.New("EOF")}, fault.Retry, fault.Unknown},
		{"no credentials", errors.New("get credentials: none"), fault.Retry, fault.Retry},
		{"parameters", smithy.InvalidParamsError{Context: "X"}, fault.Invalid, fault.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := fault.KindOf(awsfault.ReadCall("reading", "ec2:X").Wrap(test.err)); got != test.read {
				t.Errorf("a read is %q, want %q", got, test.read)
			}
			if got := fault.KindOf(awsfault.WriteCall("writing", "ec2:X").Wrap(test.err)); got != test.write {
				t.Errorf("a write is %q, want %q", got, test.write)
			}
		})
	}
}

func TestHint(t *testing.T) {
	call := awsfault.WriteCall("creating the fleet", "ec2:CreateFleet")
	for _, test := range []struct{ name, code, message, want string }{
		{"its own action", "UnauthorizedOperation", "You are not authorized to perform this operation.", "allow ec2:CreateFleet in"},
		{"the action that AWS names", "UnauthorizedOperation",
			"User: x is not authorized to perform: iam:PassRole on resource: y", "allow iam:PassRole in"},
		{"the spot role", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", "create-service-linked-role"},
		{"credentials", "InvalidClientTokenId", "", "credentials"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := call.Wrap(said(test.code, test.message, 403))
			if hint := fault.FindHint(err); !strings.Contains(hint, test.want) {
				t.Errorf("got hint %q, want %q in it", hint, test.want)
			}
		})
	}
	if hint := fault.FindHint(call.Wrap(said("RequestLimitExceeded", "", 503))); hint != "" {
		t.Errorf("throttling has the hint %q", hint)
	}
}

// TestText keeps AWS's code and message, and the cause of an error without a response.
func TestText(t *testing.T) {
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"answered", "finding the queue a: AccessDenied: not you", fmt.Errorf("finding the queue a: %w", said("AccessDenied", "not you", 403))},
		{"with a host's id", "NoSuchBucket: none", errors.New("operation error S3: GetObject, https response error StatusCode: 404, RequestID: 1, HostID: 2, api error NoSuchBucket: none")},
		{"never sent", "no such host", &smithy.OperationError{ServiceID: "ARC Zonal Shift", OperationName: "X", Err: &smithyhttp.RequestSendError{Err: errors.New("no such host")}}},
		{"not of AWS", "region: none", errors.New("region: none")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := awsfault.ErrorText(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
