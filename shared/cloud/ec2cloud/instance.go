package ec2cloud

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// DescribeInstances filters by ids instead of requesting them: one unknown id would fail the call, and pages would
// not work.
func (c Cloud) DescribeInstances(ctx context.Context, want cloud.InstanceFilter) ([]cloud.Instance, error) {
	filters := tagFilters(want.Tags)
	if len(want.States) > 0 {
		var states []string
		for _, state := range want.States {
			states = append(states, string(state))
		}
		filters = append(filters, filter("instance-state-name", states...))
	}
	if len(want.IDs) == 0 {
		return c.instances(ctx, filters)
	}
	ids := slices.Compact(slices.Sorted(slices.Values(want.IDs)))
	var out []cloud.Instance
	for some := range chunkIDs(ids, filters) {
		found, err := c.instances(ctx, append(slices.Clone(filters), filter("instance-id", some...)))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (c Cloud) instances(ctx context.Context, filters []types.Filter) ([]cloud.Instance, error) {
	pages := ec2.NewDescribeInstancesPaginator(c.client,
		&ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(page)})
	var out []cloud.Instance
	what := awsfault.ReadCall("describing instances", "ec2:DescribeInstances")
	err := all(ctx, what, pages, func(found *ec2.DescribeInstancesOutput) {
		for _, reservation := range found.Reservations {
			for _, instance := range reservation.Instances {
				out = append(out, fromInstance(instance))
			}
		}
	})
	return out, err
}

func fromInstance(i types.Instance) cloud.Instance {
	out := cloud.Instance{
		ID: aws.ToString(i.InstanceId), Type: string(i.InstanceType), CapacityType: capacityType(i),
		ImageID: aws.ToString(i.ImageId), SubnetID: aws.ToString(i.SubnetId),
		PrivateDNS: aws.ToString(i.PrivateDnsName), Launched: aws.ToTime(i.LaunchTime), Tags: fromTags(i.Tags),
	}
	if out.CapacityType == cloud.Reserved {
		out.Reservation = aws.ToString(i.CapacityReservationId)
	}
	for _, group := range i.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(group.GroupId))
	}
	if p := i.Placement; p != nil {
		out.Zone, out.Partition = aws.ToString(p.AvailabilityZone), aws.ToInt32(p.PartitionNumber)
		out.PlacementGroup, out.PlacementGroupID = aws.ToString(p.GroupName), aws.ToString(p.GroupId)
	}
	if i.IamInstanceProfile != nil {
		arn := aws.ToString(i.IamInstanceProfile.Arn)
		out.Profile = arn[strings.LastIndex(arn, "/")+1:]
	}
	if i.State != nil {
		out.State = cloud.State(i.State.Name)
	}
	return out
}

// capacityType returns reserved for an instance that was launched into a reservation. EC2 also puts on-demand instances
// into open reservations with their type; those stay on-demand (Karpenter: pkg/providers/instance/types.go).
func capacityType(i types.Instance) string {
	wanted := i.CapacityReservationSpecification
	switch {
	case i.InstanceLifecycle == types.InstanceLifecycleTypeSpot:
		return cloud.Spot
	case aws.ToString(i.CapacityReservationId) != "" && wanted != nil && wanted.CapacityReservationPreference == types.CapacityReservationPreferenceCapacityReservationsOnly,
		i.InstanceLifecycle == types.InstanceLifecycleTypeCapacityBlock,
		i.InstanceLifecycle == types.InstanceLifecycleTypeInterruptibleCapacityReservation:
		return cloud.Reserved
	}
	return cloud.OnDemand
}
