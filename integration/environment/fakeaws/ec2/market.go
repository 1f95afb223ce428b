package ec2

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

type zone struct {
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	State  string `xml:"zoneState"`
	Region string `xml:"regionName"`
}

func (s *Service) describeZones(ctx context.Context, _ query.Form) (any, error) {
	found, err := s.cloud.AvailabilityZones(ctx)
	if err != nil {
		return nil, err
	}
	var out struct {
		Zones []zone `xml:"availabilityZoneInfo>item"`
	}
	for _, z := range found {
		state := "available"
		if z.Down {
			state = "unavailable"
		}
		out.Zones = append(out.Zones, zone{z.Name, z.ID, state, s.cloud.Region()})
	}
	return out, nil
}

type typeOffering struct {
	Type  string `xml:"instanceType"`
	Where string `xml:"location"`
	Kind  string `xml:"locationType"`
}

func (s *Service) describeOfferings(ctx context.Context, form query.Form) (any, error) {
	if kind := form.Get("LocationType"); kind != "availability-zone" {
		return nil, fmt.Errorf("%w: locations of kind %s", query.ErrUnserved, kind)
	}
	found, err := s.cloud.TypeOfferings(ctx)
	if err != nil {
		return nil, err
	}
	var out struct {
		Offerings []typeOffering `xml:"instanceTypeOfferingSet>item"`
		Next      string         `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, o := range found {
		out.Offerings = append(out.Offerings, typeOffering{o.Type, o.Zone, "availability-zone"})
	}
	return out, nil
}

type spotPrice struct {
	Type    string    `xml:"instanceType"`
	Zone    string    `xml:"availabilityZone"`
	ZoneID  string    `xml:"availabilityZoneId"`
	Product string    `xml:"productDescription"`
	Price   string    `xml:"spotPrice"`
	At      time.Time `xml:"timestamp"`
}

// describeSpotPrices returns each price twice, the older one second and with a higher
// price, as EC2 does after a price change.
func (s *Service) describeSpotPrices(ctx context.Context, form query.Form) (any, error) {
	if !slices.Contains(form.List("ProductDescription"), "Linux/UNIX") {
		return nil, fmt.Errorf("%w: prices of %v", query.ErrUnserved, form.List("ProductDescription"))
	}
	at, err := time.Parse(time.RFC3339, form.Get("StartTime"))
	if err != nil {
		return nil, fmt.Errorf("%w: prices since %q", query.ErrUnserved, form.Get("StartTime"))
	}
	found, err := s.cloud.SpotPrices(ctx, at)
	if err != nil {
		return nil, err
	}
	var all []spotPrice
	for _, p := range found {
		for n, price := range []float64{p.PerHour, 2 * p.PerHour} {
			all = append(all, spotPrice{p.Type, p.Zone, p.ZoneID, "Linux/UNIX", strconv.FormatFloat(price, 'f', 6, 64), at.Add(-time.Duration(n) * time.Hour)})
		}
	}
	var out struct {
		Prices []spotPrice `xml:"spotPriceHistorySet>item"`
		Next   string      `xml:"nextToken,omitempty"`
	}
	out.Prices, out.Next = paged(form, all)
	return out, nil
}

// typeFilters are the filters that the adapter sends, the only supported ones.
var typeFilters = map[string][]string{
	"supported-virtualization-type":         {"hvm"},
	"processor-info.supported-architecture": {"x86_64", "arm64"},
}

func (s *Service) describeTypes(ctx context.Context, form query.Form) (any, error) {
	if isDryRun(form) {
		return nil, errWouldSucceed
	}
	for _, f := range form.Each("Filter") {
		if !slices.Equal(typeFilters[f.Get("Name")], f.List("Value")) {
			return nil, fmt.Errorf("%w: filter %s with %v", query.ErrUnserved, f.Get("Name"), f.List("Value"))
		}
	}
	if n := form.Int("MaxResults"); n < 5 || n > 100 {
		return nil, fmt.Errorf("%w: pages of %d types", query.ErrUnserved, n)
	}
	found, err := s.cloud.InstanceTypes(ctx)
	if err != nil {
		return nil, err
	}
	var out struct {
		Types []instanceType `xml:"instanceTypeSet>item"`
		Next  string         `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, t := range found {
		out.Types = append(out.Types, typeOf(t))
	}
	return out, nil
}

// baseline divides the bandwidth among the network cards.
func baseline(n cloud.InstanceNetwork) float64 {
	if n.Cards == 0 {
		return 0
	}
	return n.BaselineGbps / float64(n.Cards)
}
