// Package pricing is the adapter to the AWS Price List: on-demand prices of instance types.
//
// A partition has one list for all regions, and few endpoints; see Endpoint. A partition without an endpoint is not
// supported: the caller must have prices from another source.
package pricing

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// timeout is the timeout of one page.
	timeout = time.Minute
	// page is the maximum number of products in one response.
	page = 100
	// service is EC2's code in the list.
	service = "AmazonEC2"
)

// Endpoint returns the region of the endpoint for a region's prices: the nearest of those in "Price List Query API
// endpoints" of AWS's billing guide.
func Endpoint(region string) string {
	switch area, _, _ := strings.Cut(region, "-"); area {
	case "cn":
		return "cn-northwest-1"
	case "ap":
		return "ap-south-1"
	case "eu":
		return "eu-central-1"
	default:
		return "us-east-1"
	}
}

// Currency returns the currency of a region's prices.
func Currency(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "CNY"
	}
	return "USD"
}

// Prices reads the list with one client.
type Prices struct {
	client *pricing.Client
}

var _ cloud.Prices = Prices{}

// New returns Prices with an AWS configuration, whose region is replaced by the endpoint's.
func New(config aws.Config) Prices {
	config = config.Copy()
	config.Region = Endpoint(config.Region)
	return Prices{client: pricing.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// kinds are the two product families of instances in the list: those with shared tenancy, and bare metal, which the
// list calls dedicated.
var kinds = []map[string]string{
	{"tenancy": "Shared", "productFamily": "Compute Instance"},
	{"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"},
}

// OnDemandPrices is pricing:GetProducts, for each of the two families.
func (p Prices) OnDemandPrices(ctx context.Context, region string) ([]cloud.OnDemandPrice, error) {
	found := map[string]cloud.OnDemandPrice{}
	for _, kind := range kinds {
		if err := p.read(ctx, filters(region, kind), Currency(region), found); err != nil {
			return nil, err
		}
	}
	out := make([]cloud.OnDemandPrice, 0, len(found))
	for _, price := range found {
		out = append(out, price)
	}
	slices.SortFunc(out, func(a, b cloud.OnDemandPrice) int { return cmp.Compare(a.Type, b.Type) })
	return out, nil
}

// filters select the price of running Linux without licences.
func filters(region string, kind map[string]string) []types.Filter {
	var out []types.Filter
	for _, f := range [][2]string{
		{"regionCode", region}, {"serviceCode", service}, {"preInstalledSw", "NA"}, {"operatingSystem", "Linux"},
		{"capacitystatus", "Used"}, {"marketoption", "OnDemand"}, {"tenancy", kind["tenancy"]}, {"productFamily", kind["productFamily"]},
	} {
		out = append(out, types.Filter{Type: types.FilterTypeTermMatch, Field: aws.String(f[0]), Value: aws.String(f[1])})
	}
	return out
}

func (p Prices) read(ctx context.Context, filters []types.Filter, currency string, into map[string]cloud.OnDemandPrice) error {
	what := awsfault.ReadCall("reading on-demand prices", "pricing:GetProducts")
	pages := pricing.NewGetProductsPaginator(p.client, &pricing.GetProductsInput{
		ServiceCode: aws.String(service), Filters: filters, MaxResults: aws.Int32(page),
	})
	for pages.HasMorePages() {
		out, err := p.next(ctx, pages)
		if err != nil {
			return what.Wrap(err)
		}
		for _, text := range out.PriceList {
			price, err := parse(text, currency)
			if err != nil {
				return fault.E(what.Op, fault.Invalid, err)
			}
			// Several products of a type may differ in attributes without a filter; use the highest price, which no
			// launch exceeds.
			if price.PerHour > into[price.Type].PerHour {
				into[price.Type] = price
			}
		}
	}
	return nil
}

func (p Prices) next(ctx context.Context, pages *pricing.GetProductsPaginator) (*pricing.GetProductsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pages.NextPage(ctx)
}
