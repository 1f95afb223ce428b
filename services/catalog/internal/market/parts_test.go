package market

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var embeddedDate = time.Date(2025, time.May, 28, 0, 0, 0, 0, time.UTC)

func embeddedParts() Offline {
	return Offline{Parts: catalog.Parts{
		Region: "eu-west-1", AsOf: embeddedDate, Types: []catalog.InstanceType{{Name: "old"}},
		Offerings: []cloud.TypeOffering{{Type: "old", Zone: "eu-west-1a"}}, Zones: []cloud.AvailabilityZone{{Name: "eu-west-1a", ID: "euw1-az1"}},
		OnDemand: []cloud.OnDemandPrice{{Type: "old", PerHour: 9, Currency: "USD"}, {Type: "new", PerHour: 9, Currency: "USD"}},
		Spot:     []cloud.SpotPrice{{Type: "old", PerHour: 3}},
	}}
}

func newPart[T any](since time.Time, items ...T) Part[T] { return Part[T]{Since: since, Items: items} }

func fullCache() CachedParts {
	return CachedParts{
		Format: Format, Region: "eu-west-1", Types: newPart(noon, catalog.InstanceType{Name: "new"}),
		Offerings: newPart(noon, cloud.TypeOffering{Type: "new", Zone: "eu-west-1c"}), Zones: newPart(noon, cloud.AvailabilityZone{Name: "eu-west-1c", ID: "euw1-az9"}),
		OnDemand: newPart(noon.Add(-time.Hour), cloud.OnDemandPrice{Type: "new", PerHour: 2, Currency: "USD"}),
		Spot:     newPart(noon.Add(-2*time.Hour), cloud.SpotPrice{Type: "new", Zone: "eu-west-1c", PerHour: 1}),
		Shifts:   newPart(noon, cloud.ZonalShift{ZoneID: "euw1-az9", Until: noon.Add(time.Hour)}, cloud.ZonalShift{ZoneID: "euw1-az1", Until: noon}),
	}
}

func TestBuildParts(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(b *CachedParts, o *Offline, p *Policy)
		expect func(want *catalog.Parts)
	}{
		{"all parts are cached", func(*CachedParts, *Offline, *Policy) {}, func(*catalog.Parts) {}},
		{"no types", func(b *CachedParts, _ *Offline, _ *Policy) { b.Types = Part[catalog.InstanceType]{} },
			func(w *catalog.Parts) { w.Types, w.Embedded = []catalog.InstanceType{{Name: "old"}}, true }},
		{"no offerings: embedded zones are used too", func(b *CachedParts, _ *Offline, _ *Policy) { b.Offerings = Part[cloud.TypeOffering]{} },
			func(w *catalog.Parts) {
				w.Offerings, w.Zones, w.Embedded = embeddedParts().Offerings, embeddedParts().Zones, true
			}},
		{"no zones: embedded zone ids are not used", func(b *CachedParts, _ *Offline, _ *Policy) { b.Zones = Part[cloud.AvailabilityZone]{} },
			func(w *catalog.Parts) { w.Zones = nil }},
		{"no on-demand prices", func(b *CachedParts, _ *Offline, _ *Policy) { b.OnDemand = Part[cloud.OnDemandPrice]{} },
			func(w *catalog.Parts) { w.OnDemand, w.AsOf = embeddedParts().OnDemand, embeddedDate }},
		{"a price is missing", func(b *CachedParts, _ *Offline, _ *Policy) { b.OnDemand.Items[0].Type = "other" },
			func(w *catalog.Parts) {
				w.OnDemand = []cloud.OnDemandPrice{{Type: "other", PerHour: 2, Currency: "USD"}, {Type: "old", PerHour: 9, Currency: "USD"}, {Type: "new", PerHour: 9, Currency: "USD"}}
			}},
		{"prices in another currency are not added", func(b *CachedParts, _ *Offline, _ *Policy) { b.OnDemand.Items[0].Currency = "CNY" },
			func(w *catalog.Parts) {
				w.OnDemand = []cloud.OnDemandPrice{{Type: "new", PerHour: 2, Currency: "CNY"}}
			}},
		{"no spot prices", func(b *CachedParts, _ *Offline, _ *Policy) { b.Spot = Part[cloud.SpotPrice]{} },
			func(w *catalog.Parts) { w.Spot, w.AsOf = embeddedParts().Spot, embeddedDate }},
		{"no spot prices in a region that is not embedded", func(b *CachedParts, o *Offline, _ *Policy) { b.Spot, o.Spot = Part[cloud.SpotPrice]{}, nil },
			func(w *catalog.Parts) {
				w.Spot, w.AsOf = []cloud.SpotPrice{{Type: "new", PerHour: 2}, {Type: "old", PerHour: 9}}, embeddedDate
			}},
		{"zonal shifts are off", func(_ *CachedParts, _ *Offline, p *Policy) { p.Shifts = false }, func(w *catalog.Parts) { w.Shifted = nil }},
		{"a shift without an end", func(b *CachedParts, _ *Offline, _ *Policy) { b.Shifts.Items[1].Until = time.Time{} },
			func(w *catalog.Parts) { w.Shifted = []string{"euw1-az9", "euw1-az1"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			cached, off, policy := fullCache(), embeddedParts(), fullPolicy
			test.change(&cached, &off, &policy)
			want := catalog.Parts{
				Region: "eu-west-1", AsOf: noon.Add(-time.Hour), Types: fullCache().Types.Items, Offerings: fullCache().Offerings.Items,
				Zones: fullCache().Zones.Items, Spot: fullCache().Spot.Items, Shifted: []string{"euw1-az9"},
				OnDemand: append(fullCache().OnDemand.Items, cloud.OnDemandPrice{Type: "old", PerHour: 9, Currency: "USD"}),
			}
			test.expect(&want)
			got := BuildParts(cached, off, policy, noon)
			got.Sources = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListWarnings(t *testing.T) {
	denial := fault.F("calling", fault.Denied, "no").WithHint("allow it")
	for _, test := range []struct {
		name   string
		change func(s *State, b *CachedParts, o *Offline, p *Policy)
		want   []string
	}{
		{"all parts are current", func(*State, *CachedParts, *Offline, *Policy) {}, nil},
		{"a permission was removed", func(s *State, _ *CachedParts, _ *Offline, _ *Policy) {
			s.Readings[Types] = Reading{At: noon.Add(-3 * time.Hour)}.WithOutcome(noon, denial)
		}, []string{"hardware: using data of 2026-11-20T09:00:00Z, 3h0m0s old, because ec2:DescribeInstanceTypes is denied (try: allow it)"}},
		{"a permission was always missing", func(s *State, b *CachedParts, _ *Offline, _ *Policy) {
			b.OnDemand, s.Readings[OnDemand] = Part[cloud.OnDemandPrice]{}, Reading{}.WithOutcome(noon, denial)
		}, []string{"on-demand prices: using the embedded ones of 2025-05-28, 541 days old, because pricing:GetProducts is denied (try: allow it)"}},
		{"isolated", func(_ *State, b *CachedParts, _ *Offline, p *Policy) {
			b.OnDemand, p.Isolated = Part[cloud.OnDemandPrice]{}, true
		}, []string{"on-demand prices: using the embedded ones of 2025-05-28, 541 days old, because ISOLATED_VPC is set and Joist does not call pricing:GetProducts"}},
		{"GovCloud", func(_ *State, b *CachedParts, o *Offline, p *Policy) {
			b.OnDemand, p.HasPriceList, o.FromOtherRegion, o.Region = Part[cloud.OnDemandPrice]{}, false, true, "us-gov-west-1"
		}, []string{"on-demand prices: using the embedded ones of 2025-05-28, 541 days old, of another region, because the AWS Price List has no endpoint in partition aws-us-gov"}},
		{"zonal shifts were never read", func(s *State, _ *CachedParts, _ *Offline, _ *Policy) {
			s.Readings[Shifts] = Reading{}.WithOutcome(noon, denial)
		}, []string{"zonal shifts: unknown, and no zone is avoided, because arc-zonal-shift:GetManagedResource is denied (try: allow it)"}},
		{"zonal shifts are off", func(s *State, _ *CachedParts, _ *Offline, p *Policy) {
			s.Readings[Shifts], p.Shifts = Reading{}.WithOutcome(noon, denial), false
		}, nil},
		{"zones", func(s *State, b *CachedParts, _ *Offline, _ *Policy) {
			b.Zones, s.Readings[Zones] = Part[cloud.AvailabilityZone]{}, Reading{}.WithOutcome(noon, denial)
		}, []string{"zone ids: using those in the spot price history, because ec2:DescribeAvailabilityZones is denied (try: allow it)"}},
		{"out of reach, without a hint", func(s *State, _ *CachedParts, _ *Offline, _ *Policy) {
			s.Readings[Spot] = Reading{At: noon}.WithOutcome(noon.Add(time.Minute), fault.F("calling", fault.Retry, "no route"))
		}, []string{"spot prices: using data of 2026-11-20T12:00:00Z, 0s old, because ec2:DescribeSpotPriceHistory is out of reach (calling: no route)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			state, cached, off, policy := sameReadings(Reading{At: noon, Tried: noon}), fullCache(), embeddedParts(), fullPolicy
			test.change(&state, &cached, &off, &policy)
			if diff := cmp.Diff(test.want, ListWarnings(state, cached, off, policy, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTruncateWarning(t *testing.T) {
	if got := TruncateWarning(strings.Repeat("ü", 1000)); len(got) > warningMax+3 || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%d bytes: …%s", len(got), got[len(got)-6:])
	}
}

// Sources depend on the parts only, so reading the same parts again gives the same
// catalogue.
func TestListSources(t *testing.T) {
	cached := fullCache()
	cached.OnDemand = Part[cloud.OnDemandPrice]{}
	off := embeddedParts()
	off.Sources = []catalog.Provenance{{Source: "other"}}
	got := listSources(cached, off)
	want := []catalog.Provenance{
		{Source: "ec2:DescribeInstanceTypes", Date: "2026-11-20", Carries: "hardware"},
		{Source: "ec2:DescribeInstanceTypeOfferings", Date: "2026-11-20", Carries: "offered zones"},
		{Source: "ec2:DescribeAvailabilityZones", Date: "2026-11-20", Carries: "zone ids"},
		{Source: "ec2:DescribeSpotPriceHistory", Date: "2026-11-20", Carries: "spot prices"},
		{Source: "the embedded catalogue", Date: "2025-05-28", Carries: "on-demand prices"},
		{Source: "other"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
