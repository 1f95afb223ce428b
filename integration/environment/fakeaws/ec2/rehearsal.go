package ec2

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// errRehearsed is the response to a dry run that would have succeeded.
var errRehearsed = errors.New("the dry run would have succeeded")

// rehearsed converts success to EC2's error for a successful dry run.
func rehearsed(err error) error {
	if err == nil {
		return errRehearsed
	}
	return err
}

// isRehearsal reports whether the request is a dry run.
func isRehearsal(form query.Form) bool { return form.Get("DryRun") == "true" }

// runInstances supports only dry runs, because Joist launches with fleets.
func (s *Service) runInstances(ctx context.Context, form query.Form) (any, error) {
	if !isRehearsal(form) {
		return nil, fmt.Errorf("%w: RunInstances without DryRun", query.ErrUnserved)
	}
	interfaces := form.Each("NetworkInterface")
	if len(interfaces) == 0 {
		return nil, fmt.Errorf("%w: RunInstances without an interface", query.ErrUnserved)
	}
	return nil, rehearsed(s.cloud.TryRun(ctx, cloud.RunRequest{
		Template: form.Get("LaunchTemplate.LaunchTemplateName"), InstanceType: form.Get("InstanceType"),
		SubnetID: interfaces[0].Get("SubnetId"), TagSets: tagSets(form),
	}))
}
