package ec2cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// DescribeSubnets is ec2:DescribeSubnets, once for each selector. A subnet's name is its Name tag.
func (c Cloud) DescribeSubnets(ctx context.Context, selectors []cloud.Selector) ([]cloud.Subnet, error) {
	var out []cloud.Subnet
	first := once()
	what := awsfault.ReadCall("describing subnets", "ec2:DescribeSubnets")
	for _, q := range queries(selectors, "subnet-id", "tag:Name") {
		pages := ec2.NewDescribeSubnetsPaginator(c.client,
			&ec2.DescribeSubnetsInput{Filters: q.filters, MaxResults: aws.Int32(page)})
		err := all(ctx, what, pages, func(found *ec2.DescribeSubnetsOutput) {
			for _, s := range found.Subnets {
				if first(aws.ToString(s.SubnetId)) {
					out = append(out, cloud.Subnet{
						ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone),
						ZoneID: aws.ToString(s.AvailabilityZoneId), VPC: aws.ToString(s.VpcId),
						FreeIPs: int(aws.ToInt32(s.AvailableIpAddressCount)), Tags: fromTags(s.Tags),
					})
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DescribeSecurityGroups is ec2:DescribeSecurityGroups, once for each selector.
func (c Cloud) DescribeSecurityGroups(ctx context.Context, selectors []cloud.Selector) ([]cloud.SecurityGroup, error) {
	var out []cloud.SecurityGroup
	first := once()
	what := awsfault.ReadCall("describing security groups", "ec2:DescribeSecurityGroups")
	for _, q := range queries(selectors, "group-id", "group-name") {
		pages := ec2.NewDescribeSecurityGroupsPaginator(c.client,
			&ec2.DescribeSecurityGroupsInput{Filters: q.filters, MaxResults: aws.Int32(page)})
		err := all(ctx, what, pages, func(found *ec2.DescribeSecurityGroupsOutput) {
			for _, g := range found.SecurityGroups {
				if first(aws.ToString(g.GroupId)) {
					out = append(out, cloud.SecurityGroup{
						ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), Tags: fromTags(g.Tags),
					})
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
