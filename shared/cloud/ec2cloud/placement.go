package ec2cloud

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

var _ cloud.Placements = Cloud{}

// DescribeReservations is ec2:DescribeCapacityReservations for active reservations. It excludes those on an Outpost,
// because nodes are launched in zones.
func (c Cloud) DescribeReservations(ctx context.Context) ([]cloud.Reservation, error) {
	var out []cloud.Reservation
	pages := ec2.NewDescribeCapacityReservationsPaginator(c.client, &ec2.DescribeCapacityReservationsInput{
		Filters: []types.Filter{filter("state", "active")}, MaxResults: aws.Int32(page),
	})
	err := all(ctx, awsfault.ReadCall("describing capacity reservations", "ec2:DescribeCapacityReservations"), pages,
		func(found *ec2.DescribeCapacityReservationsOutput) {
			for _, r := range found.CapacityReservations {
				if aws.ToString(r.OutpostArn) == "" {
					out = append(out, fromReservation(r))
				}
			}
		})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func fromReservation(r types.CapacityReservation) cloud.Reservation {
	return cloud.Reservation{
		ID: aws.ToString(r.CapacityReservationId), InstanceType: aws.ToString(r.InstanceType),
		Zone: aws.ToString(r.AvailabilityZone), Owner: aws.ToString(r.OwnerId),
		Match: string(r.InstanceMatchCriteria), Kind: cmp.Or(string(r.ReservationType), cloud.DefaultReservation),
		Interruptible: aws.ToBool(r.Interruptible), Available: int(aws.ToInt32(r.AvailableInstanceCount)),
		Ends: aws.ToTime(r.EndDate), Tags: fromTags(r.Tags),
	}
}

// DescribePlacementGroups is ec2:DescribePlacementGroups, which has no pages.
func (c Cloud) DescribePlacementGroups(ctx context.Context) ([]cloud.PlacementGroup, error) {
	what := awsfault.ReadCall("describing placement groups", "ec2:DescribePlacementGroups")
	found, err := call(ctx, what, func(ctx context.Context) (*ec2.DescribePlacementGroupsOutput, error) {
		return c.client.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{
			Filters: []types.Filter{filter("state", "available")},
		})
	})
	if err != nil {
		return nil, err
	}
	var out []cloud.PlacementGroup
	for _, g := range found.PlacementGroups {
		out = append(out, cloud.PlacementGroup{
			ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), Strategy: string(g.Strategy),
			Partitions: int(aws.ToInt32(g.PartitionCount)), Tags: fromTags(g.Tags),
		})
	}
	return out, nil
}
