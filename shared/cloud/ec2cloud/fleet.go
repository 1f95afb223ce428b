package ec2cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// version is the only version of Joist's templates.
const version = "1"

// CreateFleet is ec2:CreateFleet of type instant, tried once.
func (c Cloud) CreateFleet(ctx context.Context, request cloud.FleetRequest) (cloud.FleetResult, error) {
	what := awsfault.WriteCall("creating the fleet", "ec2:CreateFleet")
	out, err := call(ctx, what, func(ctx context.Context) (*ec2.CreateFleetOutput, error) {
		return c.client.CreateFleet(ctx, toFleet(request), single)
	})
	if err != nil {
		return cloud.FleetResult{}, err
	}
	return fromFleet(request, out), nil
}

func toFleet(request cloud.FleetRequest) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(int32(request.Count)),
			// To a fleet, default reservations are on-demand: the template names them.
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: toSpecifications(request.TagSets), Context: optional(request.Context),
	}
	if request.Token != "" {
		in.ClientToken = aws.String(request.Token)
	}
	setTarget(in, request)
	for _, config := range request.Configs {
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, toConfig(config))
	}
	return in
}

// setTarget sets the purchase option and the allocation strategy. Capacity blocks and interruptible reservations have
// no strategy.
func setTarget(in *ec2.CreateFleetInput, request cloud.FleetRequest) {
	to := in.TargetCapacitySpecification
	switch {
	case request.CapacityType == cloud.Spot:
		to.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategy(request.Strategy)}
	case request.Target == "":
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategy(request.Strategy)}
	default:
		to.DefaultTargetCapacityType = types.DefaultTargetCapacityType(request.Target)
		if request.Target == cloud.TargetReservedCapacity {
			in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{
				ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation},
			}
		}
	}
}

func toConfig(config cloud.FleetConfig) types.FleetLaunchTemplateConfigRequest {
	out := types.FleetLaunchTemplateConfigRequest{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
			LaunchTemplateName: aws.String(config.Template), Version: aws.String(version),
		},
	}
	for _, o := range config.Overrides {
		out.Overrides = append(out.Overrides, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(o.InstanceType), SubnetId: optional(o.SubnetID),
			// The subnet implies the zone, but the response repeats only the request, and errors are recorded by
			// zone.
			AvailabilityZone: optional(o.Zone), ImageId: optional(o.ImageID), Priority: o.Priority,
		})
	}
	return out
}

// optional returns nil for an empty string, because EC2 rejects empty values.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func fromFleet(request cloud.FleetRequest, out *ec2.CreateFleetOutput) cloud.FleetResult {
	result := cloud.FleetResult{FleetID: aws.ToString(out.FleetId)}
	for _, i := range out.Instances {
		from := origin(request, i.LaunchTemplateAndOverrides)
		result.Instances = append(result.Instances, cloud.FleetInstances{
			IDs: i.InstanceIds, InstanceType: string(i.InstanceType), Zone: from.Zone, SubnetID: from.SubnetID,
			Template: from.template, CapacityType: request.CapacityType,
		})
	}
	for _, e := range out.Errors {
		from := origin(request, e.LaunchTemplateAndOverrides)
		result.Errors = append(result.Errors, cloud.FleetError{
			Code: aws.ToString(e.ErrorCode), Message: aws.ToString(e.ErrorMessage),
			InstanceType: from.InstanceType, Zone: from.Zone, SubnetID: from.SubnetID, Template: from.template,
		})
	}
	return result
}

// source is an override of the request, and its template's name.
type source struct {
	cloud.Override
	template string
}

// origin finds the override of the request that a response is about. EC2 may omit the zone, and identify the template
// only by id.
func origin(request cloud.FleetRequest, a *types.LaunchTemplateAndOverridesResponse) source {
	var out source
	if a == nil {
		return out
	}
	if o := a.Overrides; o != nil {
		out.InstanceType, out.SubnetID = string(o.InstanceType), aws.ToString(o.SubnetId)
		out.Zone, out.ImageID = aws.ToString(o.AvailabilityZone), aws.ToString(o.ImageId)
	}
	if s := a.LaunchTemplateSpecification; s != nil {
		out.template = aws.ToString(s.LaunchTemplateName)
	}
	if out.Zone != "" && out.template != "" {
		return out
	}
	for _, config := range request.Configs {
		for _, o := range config.Overrides {
			if out.asked(config.Template, o) {
				return source{o, config.Template}
			}
		}
	}
	return out
}

// asked reports whether the override matches all fields of the response.
func (s source) asked(template string, o cloud.Override) bool {
	return s.InstanceType == o.InstanceType && s.SubnetID == o.SubnetID &&
		(s.template == "" || s.template == template) && (s.ImageID == "" || s.ImageID == o.ImageID)
}
