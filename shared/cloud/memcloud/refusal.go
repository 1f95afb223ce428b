package memcloud

import (
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Refusal is an AWS error: a code and a message.
type Refusal struct {
	Code, Message string
}

// Error returns the code and the message.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// ErrorCode returns the code, like errors of the SDK.
func (r *Refusal) ErrorCode() string { return r.Code }

// Code returns AWS's code and message in an error of this package, for fakes that return them over HTTP. Both are
// empty if it has none.
func Code(err error) (code, message string) {
	var r *Refusal
	if !errors.As(err, &r) {
		return "", ""
	}
	return r.Code, r.Message
}

// refuse returns an error of a kind with AWS's code.
func refuse(kind fault.Kind, code, format string, args ...any) error {
	return fault.E("calling the simulated EC2", kind,
		&Refusal{Code: code, Message: fmt.Sprintf(format, args...)})
}

// errLost is the error of a lost call or response.
var errLost = errors.New("the connection was lost before the response")
