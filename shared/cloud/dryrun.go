package cloud

import (
	"context"
	"errors"
)

// DryRunner makes dry runs (EC2's DryRun), which check whether EC2 would accept a call. Nil means yes; fault.Denied
// means no; other errors are those of the call itself, as far as EC2 validates its input.
type DryRunner interface {
	TryTemplate(ctx context.Context, template Template) error
	TryFleet(ctx context.Context, request FleetRequest) error
	TryRun(ctx context.Context, request RunRequest) error
}

// RunRequest is a RunInstances call for one instance, like the calls that a fleet makes for the caller. Template is the
// name of a launch template.
type RunRequest struct {
	Template, InstanceType, SubnetID string
	// Interfaces replace the template's; none means one normal interface.
	Interfaces []NetworkInterface
	// SecurityGroups are those of the interfaces; none means the subnet's default.
	SecurityGroups []string
	// BlockDevices and Metadata are in addition to the template's, and equal to them: for policies EC2 takes the
	// metadata options only from the call.
	BlockDevices []BlockDevice
	Metadata     Metadata
	TagSets      []TagSet
}

// Code returns AWS's error code in an error of any implementation, or "".
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
