package ec2cloud

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// typesPage is the maximum number of types in one response.
const typesPage = 100

// linux are the product descriptions for Linux in the price history. Accounts without EC2-Classic also have the
// second one.
var linux = []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}

var _ cloud.Market = Cloud{}

// InstanceTypes is ec2:DescribeInstanceTypes. It excludes types without hardware virtualization, and Macs, which
// cannot be nodes.
func (c Cloud) InstanceTypes(ctx context.Context) ([]cloud.InstanceType, error) {
	pages := ec2.NewDescribeInstanceTypesPaginator(c.client, &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{
			filter("supported-virtualization-type", "hvm"),
			filter("processor-info.supported-architecture", "x86_64", "arm64"),
		},
		MaxResults: aws.Int32(typesPage),
	})
	var out []cloud.InstanceType
	what := awsfault.ReadCall("describing instance types", "ec2:DescribeInstanceTypes")
	err := all(ctx, what, pages, func(found *ec2.DescribeInstanceTypesOutput) {
		for _, i := range found.InstanceTypes {
			out = append(out, fromInstanceType(i))
		}
	})
	return whole(out, err)
}

// TypeOfferings is ec2:DescribeInstanceTypeOfferings, by zone.
func (c Cloud) TypeOfferings(ctx context.Context) ([]cloud.TypeOffering, error) {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.client, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(page),
	})
	var out []cloud.TypeOffering
	what := awsfault.ReadCall("describing where instance types are offered", "ec2:DescribeInstanceTypeOfferings")
	err := all(ctx, what, pages, func(found *ec2.DescribeInstanceTypeOfferingsOutput) {
		for _, o := range found.InstanceTypeOfferings {
			out = append(out, cloud.TypeOffering{Type: string(o.InstanceType), Zone: aws.ToString(o.Location)})
		}
	})
	return whole(out, err)
}

// AvailabilityZones is ec2:DescribeAvailabilityZones, which has one page.
func (c Cloud) AvailabilityZones(ctx context.Context) ([]cloud.AvailabilityZone, error) {
	what := awsfault.ReadCall("describing availability zones", "ec2:DescribeAvailabilityZones")
	found, err := call(ctx, what, func(ctx context.Context) (*ec2.DescribeAvailabilityZonesOutput, error) {
		return c.client.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	})
	if err != nil {
		return nil, err
	}
	var out []cloud.AvailabilityZone
	for _, z := range found.AvailabilityZones {
		out = append(out, cloud.AvailabilityZone{
			Name: aws.ToString(z.ZoneName), ID: aws.ToString(z.ZoneId), Down: z.State == types.AvailabilityZoneStateUnavailable,
		})
	}
	return out, nil
}

// SpotPrices is ec2:DescribeSpotPriceHistory from a time on. The first entry of each type and zone is the price at
// that time.
func (c Cloud) SpotPrices(ctx context.Context, at time.Time) ([]cloud.SpotPrice, error) {
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(c.client, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: linux, StartTime: aws.Time(at), MaxResults: aws.Int32(page),
	})
	newest := map[cloud.TypeOffering]types.SpotPrice{}
	what := awsfault.ReadCall("reading spot prices", "ec2:DescribeSpotPriceHistory")
	err := all(ctx, what, pages, func(found *ec2.DescribeSpotPriceHistoryOutput) {
		for _, p := range found.SpotPriceHistory {
			key := cloud.TypeOffering{Type: string(p.InstanceType), Zone: aws.ToString(p.AvailabilityZone)}
			if old, ok := newest[key]; !ok || aws.ToTime(old.Timestamp).Before(aws.ToTime(p.Timestamp)) {
				newest[key] = p
			}
		}
	})
	var out []cloud.SpotPrice
	for key, p := range newest {
		// An invalid price is omitted: the offering then has none.
		if price, err := strconv.ParseFloat(aws.ToString(p.SpotPrice), 64); err == nil && price > 0 && !math.IsInf(price, 0) {
			out = append(out, cloud.SpotPrice{Type: key.Type, Zone: key.Zone, ZoneID: aws.ToString(p.AvailabilityZoneId), PerHour: price})
		}
	}
	slices.SortFunc(out, func(a, b cloud.SpotPrice) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
	})
	return whole(out, err)
}

// whole returns nil on an error, so that an incomplete list is not used.
func whole[T any](list []T, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return list, nil
}
