package memcloud

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// TryTemplate is CreateLaunchTemplate with DryRun: it checks only permissions and the rate limit.
func (c *Cloud) TryTemplate(ctx context.Context, _ cloud.Template) error {
	return c.call(ctx, CreateTemplate, func(time.Time) error { return nil })
}

// TryFleet is CreateFleet with DryRun. It ignores the token.
func (c *Cloud) TryFleet(ctx context.Context, request cloud.FleetRequest) error {
	return c.call(ctx, CreateFleet, func(time.Time) error { return c.acceptable(request) })
}

// TryRun is RunInstances with DryRun, which checks that the resources exist and that the zone offers the type.
func (c *Cloud) TryRun(ctx context.Context, request cloud.RunRequest) error {
	return c.call(ctx, RunInstances, func(time.Time) error {
		from := candidate{
			Override: cloud.Override{InstanceType: request.InstanceType, SubnetID: request.SubnetID}, template: request.Template,
		}
		t := c.templates[request.Template]
		if t == nil || c.clock.Before(t.usable) {
			return refuse(fault.Missing, "InvalidLaunchTemplateName.NotFoundException",
				"The specified launch template, with template name %s, does not exist.", request.Template)
		}
		for _, check := range []func(candidate, cloud.Template) *Refusal{c.badNetwork, c.badImage, c.badType} {
			if refusal := check(from, t.Template); refusal != nil {
				return refuse(fault.Invalid, refusal.Code, "%s", refusal.Message)
			}
		}
		return nil
	})
}
