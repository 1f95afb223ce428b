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
	interfaces := form.Each("NetworkInterface")
	if len(interfaces) == 0 {
		return nil, fmt.Errorf("%w: RunInstances without an interface", query.ErrUnserved)
	}
	return nil, dryRunError(s.cloud.TryRun(ctx, cloud.RunRequest{
		Template: form.Get("LaunchTemplate.LaunchTemplateName"), InstanceType: form.Get("InstanceType"),
		SubnetID: interfaces[0].Get("SubnetId"), TagSets: tagSets(form),
	}))
}
