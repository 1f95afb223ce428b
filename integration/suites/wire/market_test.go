package wire

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cloud/pricing"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// parts reads a whole market through the adapters.
func (s site) parts(t *testing.T) catalog.Parts {
	t.Helper()
	out := catalog.Parts{Region: fakeaws.Region}
	described, err := s.InstanceTypes(t.Context())
	for _, d := range described {
		if hardware, ok := catalog.ConvertType(d); ok {
			out.Types = append(out.Types, hardware)
		}
	}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(err)
	out.Offerings, err = s.TypeOfferings(t.Context())
	fail(err)
	out.Zones, err = s.AvailabilityZones(t.Context())
	fail(err)
	out.Spot, err = s.SpotPrices(t.Context(), s.clock.Now())
	fail(err)
	out.OnDemand, err = s.OnDemandPrices(t.Context(), fakeaws.Region)
	fail(err)
	return out
}

// TestMarketOnTheWire serves a whole region, with hundreds of types on many pages of each
// call, and checks that no offering, price or disk is lost.
func TestMarketOnTheWire(t *testing.T) {
	want, err := catalog.EmbeddedCatalogue(fakeaws.Region)
	if err != nil {
		t.Fatal(err)
	}
	s := startCloudWith(t, want)
	got := catalog.Assemble(s.parts(t))
	if diff := cmp.Diff(want.Types, got.Types, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("%.3000s", diff)
	}
	for action, atLeast := range map[memcloud.Action]int{
		memcloud.DescribeInstanceTypes: len(want.Types) / 100, memcloud.DescribeInstanceTypeOfferings: 2 * len(want.Types) / 100,
		memcloud.DescribeSpotPriceHistory: 2 * len(want.Types) / 100, memcloud.GetProducts: len(want.Types) / 100,
	} {
		if n := s.model.Counts()[action].Calls; n < atLeast {
			t.Errorf("%s was called %d times", action, n)
		}
	}
}

// TestMissingPageOnTheWireIsAnError checks that a list with missing last pages is an error.
func TestMissingPageOnTheWireIsAnError(t *testing.T) {
	sold, err := catalog.EmbeddedCatalogue(fakeaws.Region)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		action memcloud.Action
		read   func(t *testing.T, s site) (int, error)
	}{
		{memcloud.DescribeInstanceTypes, func(t *testing.T, s site) (int, error) {
			t.Helper()
			out, err := s.InstanceTypes(t.Context())
			return len(out), err
		}},
		{memcloud.DescribeInstanceTypeOfferings, func(t *testing.T, s site) (int, error) {
			t.Helper()
			out, err := s.TypeOfferings(t.Context())
			return len(out), err
		}},
		{memcloud.DescribeSpotPriceHistory, func(t *testing.T, s site) (int, error) {
			t.Helper()
			out, err := s.SpotPrices(t.Context(), s.clock.Now())
			return len(out), err
		}},
		{memcloud.GetProducts, func(t *testing.T, s site) (int, error) {
			t.Helper()
			out, err := s.OnDemandPrices(t.Context(), fakeaws.Region)
			return len(out), err
		}},
	} {
		t.Run(string(test.action), func(t *testing.T) {
			s := startCloudWith(t, sold)
			s.Cloud = ec2cloud.New(productionConfig(t, s.server))
			s.model.RefuseLater(test.action, 2, fault.Throttled, "ThrottlingException", "Rate exceeded")
			for range retry.DefaultMaxAttempts - 1 {
				s.model.Refuse(test.action, fault.Throttled, "ThrottlingException", "Rate exceeded")
			}
			n, err := test.read(t, s)
			if !fault.Is(err, fault.Throttled) || n > 0 {
				t.Errorf("got %d items and %v", n, err)
			}
		})
	}
}

// TestDenialOfTheMarketNamesTheAction checks that the hint names the action to allow.
func TestDenialOfTheMarketNamesTheAction(t *testing.T) {
	s := startCloud(t)
	s.model.Deny(memcloud.GetProducts, memcloud.GetManagedResource, memcloud.DescribeInstanceTypes)
	_, prices := s.OnDemandPrices(t.Context(), fakeaws.Region)
	_, shifts := s.ZonalShifts(t.Context(), s.Cluster.ARN)
	_, types := s.InstanceTypes(t.Context())
	for action, err := range map[memcloud.Action]error{
		memcloud.GetProducts: prices, memcloud.GetManagedResource: shifts, memcloud.DescribeInstanceTypes: types,
	} {
		if !fault.Is(err, fault.Denied) || !strings.HasPrefix(fault.FindHint(err), "allow "+string(action)+" in") {
			t.Errorf("%s: got %v", action, err)
		}
	}
}

// TestUnmanagedClusterHasNoZonalShift checks that a cluster without a managed resource in the
// controller has no zonal shift.
func TestUnmanagedClusterHasNoZonalShift(t *testing.T) {
	found, err := startCloud(t).ZonalShifts(t.Context(), "arn:aws:elasticloadbalancing:eu-west-1:1:loadbalancer/x")
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestPriceListEndpoints(t *testing.T) {
	for region, want := range map[string][]string{
		"us-west-2": {"us-east-1", "USD"}, "sa-east-1": {"us-east-1", "USD"}, "eu-west-1": {"eu-central-1", "USD"},
		"ap-northeast-2": {"ap-south-1", "USD"}, "cn-north-1": {"cn-northwest-1", "CNY"}, "me-south-1": {"us-east-1", "USD"},
	} {
		if got := []string{pricing.Endpoint(region), pricing.Currency(region)}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", region, got, want)
		}
	}
}
