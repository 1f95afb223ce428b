package ec2

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// errRehearsed is the answer to a dry run that would have been made.
var errRehearsed = errors.New("the dry run would have succeeded")

// rehearsed turns success into EC2's word for it.
func rehearsed(err error) error {
	if err == nil {
		return errRehearsed
	}
	return err
}

// isRehearsal reports whether the request is a dry run.
func isRehearsal(form query.Form) bool { return form.Get("DryRun") == "true" }

// runInstances is served as a dry run alone: fleets launch.
func (s *Service) runInstances(ctx context.Context, form query.Form) (any, error) {
	if !isRehearsal(form) {
		return nil, fmt.Errorf("%w: RunInstances that is no dry run", query.ErrUnserved)
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
