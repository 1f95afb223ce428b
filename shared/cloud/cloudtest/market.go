package cloudtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

var markets = []behaviour{
	{"describes hardware", describesHardware},
	{"lists offerings", listsOfferings},
	{"names zones as subnets do", namesZones},
	{"prices spot", pricesSpot},
	{"prices on-demand", pricesOnDemand},
	{"lists no zonal shift", listsNoShift},
	{"lists zonal shifts until they end", listsShifts},
}

// unique indexes a list by key and fails the behaviour if a key repeats.
func unique[T any, K comparable](t *testing.T, list []T, key func(T) K) map[K]T {
	t.Helper()
	out := map[K]T{}
	for _, one := range list {
		if _, twice := out[key(one)]; twice {
			t.Errorf("%v is listed twice", key(one))
		}
		out[key(one)] = one
	}
	return out
}

func describesHardware(t *testing.T, s Subject) {
	found, err := s.InstanceTypes(context.Background())
	must(t, err)
	got, ok := unique(t, found, func(i cloud.InstanceType) string { return i.Name })[s.Type]
	if !ok {
		t.Fatalf("%s is missing in %d types", s.Type, len(found))
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[s.Image.Arch]
	if got.VCPU <= 0 || got.MemoryMiB <= 0 || got.Network.Interfaces <= 0 || got.Network.IPv4 <= 0 ||
		!slices.Contains(got.Architectures, machine) || !slices.Contains(got.UsageClasses, cloud.OnDemand) {
		t.Errorf("%s is %+v", s.Type, got)
	}
}

func listsOfferings(t *testing.T, s Subject) {
	found, err := s.TypeOfferings(context.Background())
	must(t, err)
	got := unique(t, found, func(o cloud.TypeOffering) cloud.TypeOffering { return o })
	for _, subnet := range s.Subnets {
		if _, ok := got[cloud.TypeOffering{Type: s.Type, Zone: subnet.Zone}]; !ok {
			t.Errorf("%s is not offered in %s", s.Type, subnet.Zone)
		}
	}
}

func namesZones(t *testing.T, s Subject) {
	found, err := s.AvailabilityZones(context.Background())
	must(t, err)
	got := unique(t, found, func(z cloud.AvailabilityZone) string { return z.Name })
	for _, subnet := range s.Subnets {
		if zone := got[subnet.Zone]; zone.ID != subnet.ZoneID || zone.Down {
			t.Errorf("zone %s = %+v, and its subnet has zone ID %s", subnet.Zone, zone, subnet.ZoneID)
		}
	}
}

func pricesSpot(t *testing.T, s Subject) {
	found, err := s.SpotPrices(context.Background(), time.Now())
	must(t, err)
	got := unique(t, found, func(p cloud.SpotPrice) cloud.TypeOffering { return cloud.TypeOffering{Type: p.Type, Zone: p.Zone} })
	for _, subnet := range s.Subnets {
		price := got[cloud.TypeOffering{Type: s.Type, Zone: subnet.Zone}]
		if price.PerHour <= 0 || price.ZoneID != "" && price.ZoneID != subnet.ZoneID {
			t.Errorf("in %s, %s is %+v", subnet.Zone, s.Type, price)
		}
	}
}

func pricesOnDemand(t *testing.T, s Subject) {
	found, err := s.OnDemandPrices(context.Background(), s.Region)
	must(t, err)
	price := unique(t, found, func(p cloud.OnDemandPrice) string { return p.Type })[s.Type]
	if price.PerHour <= 0 || price.Currency != "USD" {
		t.Errorf("%s is %+v", s.Type, price)
	}
}

func listsNoShift(t *testing.T, s Subject) {
	found, err := s.ZonalShifts(context.Background(), s.Cluster.ARN)
	must(t, err)
	if len(found) > 0 {
		t.Errorf("%s has a zonal shift: %+v", s.Cluster.ARN, found)
	}
}

func listsShifts(t *testing.T, s Subject) {
	need(t, s.Shift != nil && s.Wait != nil, "Shift")
	s.Shift(s.Subnets[0].ZoneID, time.Hour)
	s.Shift(s.Subnets[1].ZoneID, 0)
	for _, step := range []struct {
		wait time.Duration
		want []string
	}{{0, []string{s.Subnets[0].ZoneID, s.Subnets[1].ZoneID}}, {2 * time.Hour, []string{s.Subnets[1].ZoneID}}} {
		s.Wait(step.wait)
		found, err := s.ZonalShifts(context.Background(), s.Cluster.ARN)
		must(t, err)
		var got []string
		for _, shift := range found {
			got = append(got, shift.ZoneID)
			if forever := shift.Until.IsZero(); forever != (shift.ZoneID == s.Subnets[1].ZoneID) {
				t.Errorf("the shift from zone %s ends at %s", shift.ZoneID, shift.Until)
			}
		}
		if !slices.Equal(sorted(got), sorted(step.want)) {
			t.Errorf("after %s: zonal shifts %v, want %v", step.wait, got, step.want)
		}
	}
}

// Shifter returns Features.Shift for a model that takes the list of all shifts.
func Shifter(tell func(...cloud.ZonalShift), now func() time.Time) func(string, time.Duration) {
	var shifts []cloud.ZonalShift
	return func(zoneID string, lasts time.Duration) {
		shift := cloud.ZonalShift{ZoneID: zoneID}
		if lasts > 0 {
			shift.Until = now().Add(lasts)
		}
		shifts = append(shifts, shift)
		tell(shifts...)
	}
}
