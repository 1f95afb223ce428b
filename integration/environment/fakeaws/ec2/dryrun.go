package ec2

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// errWouldSucceed is the response to a dry run that would have succeeded.
var errWouldSucceed = errors.New("the dry run would have succeeded")

// dryRunError converts success to EC2's error for a successful dry run.
func dryRunError(err error) error {
	if err == nil {
		return errWouldSucceed
	}
	return err
}

// isDryRun reports whether the request is a dry run.
func isDryRun(form query.Form) bool { return form.Get("DryRun") == "true" }

// runInstances supports only dry runs, because Joist launches with fleets.
func (s *Service) runInstances(ctx context.Context, form query.Form) (any, error) {
	if !isDryRun(form) {
		return nil, fmt.Errorf("%w: RunInstances without DryRun", query.ErrUnserved)
	}
	request, err := runRequest(form)
	if err != nil {
		return nil, err
	}
	return nil, dryRunError(s.cloud.TryRun(ctx, request))
}

// runRequest parses every field of a call, so that a test can compare it with the request.
func runRequest(form query.Form) (cloud.RunRequest, error) {
	interfaces := form.Each("NetworkInterface")
	if len(interfaces) == 0 {
		return cloud.RunRequest{}, fmt.Errorf("%w: RunInstances without an interface", query.ErrUnserved)
	}
	out := cloud.RunRequest{
		Template: form.Get("LaunchTemplate.LaunchTemplateName"), InstanceType: form.Get("InstanceType"),
		SubnetID: interfaces[0].Get("SubnetId"), SecurityGroups: interfaces[0].List("SecurityGroupId"),
		BlockDevices: devices(form), Metadata: metadata(form.Sub("MetadataOptions")), TagSets: tagSets(form),
	}
	for _, f := range interfaces {
		out.Interfaces = append(out.Interfaces, cloud.NetworkInterface{Card: int32(f.Int("NetworkCardIndex")), Device: int32(f.Int("DeviceIndex")), Kind: f.Get("InterfaceType")})
	}
	return out, nil
}
