package cloud

import (
	"context"
	"errors"
)

// Rehearsal asks EC2 whether it would let the caller make a call, and makes
// none (EC2's DryRun). Nil is yes; fault.Denied is no; other errors are
// those of the call itself, as far as EC2 looks at its input.
type Rehearsal interface {
	TryTemplate(ctx context.Context, template Template) error
	TryFleet(ctx context.Context, request FleetRequest) error
	TryRun(ctx context.Context, request RunRequest) error
}

// RunRequest is a RunInstances call for one instance, such as a fleet makes on
// the caller's behalf. Template is the name of a launch template.
type RunRequest struct {
	Template, InstanceType, SubnetID string
	// Interfaces take the place of the template's; none is one ordinary interface.
	Interfaces []NetworkInterface
	// SecurityGroups are those of the interfaces; none are the subnet's default.
	SecurityGroups []string
	TagSets        []TagSet
}

// Code is AWS's error code in an error of any implementation, or "".
func Code(err error) string {
	coded, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	if !ok {
		return ""
	}
	return coded.ErrorCode()
}
