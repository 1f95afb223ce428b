package memcloud

import (
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Refusal is what AWS says when it refuses: a code, and a text for people.
type Refusal struct {
	Code, Message string
}

// Error is the code and the message.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// ErrorCode is the code, as errors of the SDK tell it.
func (r *Refusal) ErrorCode() string { return r.Code }

// Code finds AWS's code and message in an error of this package, for fakes
// that have to put it on the wire. Both are empty where AWS said nothing.
func Code(err error) (code, message string) {
	var r *Refusal
	if !errors.As(err, &r) {
		return "", ""
	}
	return r.Code, r.Message
}

// refuse is an error of a known kind with AWS's code.
func refuse(kind fault.Kind, code, format string, args ...any) error {
	return fault.E("calling the modelled cloud", kind,
		&Refusal{Code: code, Message: fmt.Sprintf(format, args...)})
}

// errLost is what a caller learns when no answer came.
var errLost = errors.New("the connection was lost before the answer")
