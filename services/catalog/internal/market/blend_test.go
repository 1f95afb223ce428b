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

var may = time.Date(2025, time.May, 28, 0, 0, 0, 0, time.UTC)

func embedded() Offline {
	return Offline{Parts: catalog.Parts{
		Region: "eu-west-1", AsOf: may, Types: []catalog.InstanceType{{Name: "old"}},
		Offerings: []cloud.TypeOffering{{Type: "old", Zone: "eu-west-1a"}}, Zones: []cloud.AvailabilityZone{{Name: "eu-west-1a", ID: "euw1-az1"}},
		OnDemand: []cloud.OnDemandPrice{{Type: "old", PerHour: 9, Currency: "USD"}, {Type: "new", PerHour: 9, Currency: "USD"}},
		Spot:     []cloud.SpotPrice{{Type: "old", PerHour: 3}},
	}}
}

func part[T any](since time.Time, items ...T) Part[T] { return Part[T]{Since: since, Items: items} }

func whole() Book {
	return Book{
		Format: Format, Region: "eu-west-1", Types: part(noon, catalog.InstanceType{Name: "new"}),
		Offerings: part(noon, cloud.TypeOffering{Type: "new", Zone: "eu-west-1c"}), Zones: part(noon, cloud.AvailabilityZone{Name: "eu-west-1c", ID: "euw1-az9"}),
		OnDemand: part(noon.Add(-time.Hour), cloud.OnDemandPrice{Type: "new", PerHour: 2, Currency: "USD"}),
		Spot:     part(noon.Add(-2*time.Hour), cloud.SpotPrice{Type: "new", Zone: "eu-west-1c", PerHour: 1}),
		Shifts:   part(noon, cloud.ZonalShift{ZoneID: "euw1-az9", Until: noon.Add(time.Hour)}, cloud.ZonalShift{ZoneID: "euw1-az1", Until: noon}),
	}
}

func TestBlend(t *testing.T) {
	for _, test := range []struct {
		name   string
		spoil  func(b *Book, o *Offline, p *Policy)
		expect func(want *catalog.Parts)
	}{
		{"everything was read", func(*Book, *Offline, *Policy) {}, func(*catalog.Parts) {}},
		{"no types", func(b *Book, _ *Offline, _ *Policy) { b.Types = Part[catalog.InstanceType]{} },
			func(w *catalog.Parts) { w.Types = []catalog.InstanceType{{Name: "old"}} }},
		{"no offerings: guessed zones go with them", func(b *Book, _ *Offline, _ *Policy) { b.Offerings = Part[cloud.TypeOffering]{} },
			func(w *catalog.Parts) { w.Offerings, w.Zones = embedded().Offerings, embedded().Zones }},
		{"no zones: no id is guessed", func(b *Book, _ *Offline, _ *Policy) { b.Zones = Part[cloud.AvailabilityZone]{} },
			func(w *catalog.Parts) { w.Zones = nil }},
		{"no on-demand prices", func(b *Book, _ *Offline, _ *Policy) { b.OnDemand = Part[cloud.OnDemandPrice]{} },
			func(w *catalog.Parts) { w.OnDemand, w.AsOf = embedded().OnDemand, may }},
		{"a price is missing", func(b *Book, _ *Offline, _ *Policy) { b.OnDemand.Items[0].Type = "other" },
			func(w *catalog.Parts) {
				w.OnDemand = []cloud.OnDemandPrice{{Type: "other", PerHour: 2, Currency: "USD"}, {Type: "old", PerHour: 9, Currency: "USD"}, {Type: "new", PerHour: 9, Currency: "USD"}}
			}},
		{"in China no dollars are mixed in", func(b *Book, _ *Offline, _ *Policy) { b.OnDemand.Items[0].Currency = "CNY" },
			func(w *catalog.Parts) {
				w.OnDemand = []cloud.OnDemandPrice{{Type: "new", PerHour: 2, Currency: "CNY"}}
			}},
		{"no spot prices", func(b *Book, _ *Offline, _ *Policy) { b.Spot = Part[cloud.SpotPrice]{} },
			func(w *catalog.Parts) { w.Spot, w.AsOf = embedded().Spot, may }},
		{"no spot prices in a region that is not embedded", func(b *Book, o *Offline, _ *Policy) { b.Spot, o.Spot = Part[cloud.SpotPrice]{}, nil },
			func(w *catalog.Parts) {
				w.Spot, w.AsOf = []cloud.SpotPrice{{Type: "new", PerHour: 2}, {Type: "old", PerHour: 9}}, may
			}},
		{"shifts are not heeded", func(_ *Book, _ *Offline, p *Policy) { p.Shifts = false }, func(w *catalog.Parts) { w.Shifted = nil }},
		{"AWS started the shift", func(b *Book, _ *Offline, _ *Policy) { b.Shifts.Items[1].Until = time.Time{} },
			func(w *catalog.Parts) { w.Shifted = []string{"euw1-az9", "euw1-az1"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			book, off, policy := whole(), embedded(), everything
			test.spoil(&book, &off, &policy)
			want := catalog.Parts{
				Region: "eu-west-1", AsOf: noon.Add(-time.Hour), Types: whole().Types.Items, Offerings: whole().Offerings.Items,
				Zones: whole().Zones.Items, Spot: whole().Spot.Items, Shifted: []string{"euw1-az9"},
				OnDemand: append(whole().OnDemand.Items, cloud.OnDemandPrice{Type: "old", PerHour: 9, Currency: "USD"}),
			}
			test.expect(&want)
			got := Blend(book, off, policy, noon)
			got.Sources = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	denial := fault.F("calling", fault.Denied, "no").WithHint("allow it")
	for _, test := range []struct {
		name  string
		spoil func(s *State, b *Book, o *Offline, p *Policy)
		want  []string
	}{
		{"all is well", func(*State, *Book, *Offline, *Policy) {}, nil},
		{"a right was lost", func(s *State, _ *Book, _ *Offline, _ *Policy) {
			s.Readings[Types] = Reading{At: noon.Add(-3 * time.Hour)}.After(noon, denial)
		}, []string{"hardware: those of 2026-11-20T09:00:00Z, 3h0m0s old, because ec2:DescribeInstanceTypes is denied (try: allow it)"}},
		{"a right was never there", func(s *State, b *Book, _ *Offline, _ *Policy) {
			b.OnDemand, s.Readings[OnDemand] = Part[cloud.OnDemandPrice]{}, Reading{}.After(noon, denial)
		}, []string{"on-demand prices: the embedded ones of 2025-05-28, 541 days old, because pricing:GetProducts is denied (try: allow it)"}},
		{"isolated", func(_ *State, b *Book, _ *Offline, p *Policy) {
			b.OnDemand, p.Isolated = Part[cloud.OnDemandPrice]{}, true
		}, []string{"on-demand prices: the embedded ones of 2025-05-28, 541 days old, because ISOLATED_VPC is set, so that pricing:GetProducts is not called"}},
		{"GovCloud", func(_ *State, b *Book, o *Offline, p *Policy) {
			b.OnDemand, p.Listed, o.Borrowed, o.Region = Part[cloud.OnDemandPrice]{}, false, true, "us-gov-west-1"
		}, []string{"on-demand prices: the embedded ones of 2025-05-28, 541 days old, of another region, because the AWS Price List has no endpoint in partition aws-us-gov"}},
		{"shifts are not known", func(s *State, _ *Book, _ *Offline, _ *Policy) {
			s.Readings[Shifts] = Reading{}.After(noon, denial)
		}, []string{"zonal shifts: not known, and no zone is avoided for one, because arc-zonal-shift:GetManagedResource is denied (try: allow it)"}},
		{"nobody asks for shifts", func(s *State, _ *Book, _ *Offline, p *Policy) {
			s.Readings[Shifts], p.Shifts = Reading{}.After(noon, denial), false
		}, nil},
		{"zones", func(s *State, b *Book, _ *Offline, _ *Policy) {
			b.Zones, s.Readings[Zones] = Part[cloud.AvailabilityZone]{}, Reading{}.After(noon, denial)
		}, []string{"zone ids: those that the history of spot prices has, because ec2:DescribeAvailabilityZones is denied (try: allow it)"}},
		{"out of reach, with no hint", func(s *State, _ *Book, _ *Offline, _ *Policy) {
			s.Readings[Spot] = Reading{At: noon}.After(noon.Add(time.Minute), fault.F("calling", fault.Retry, "no route"))
		}, []string{"spot prices: those of 2026-11-20T12:00:00Z, 0s old, because ec2:DescribeSpotPriceHistory is out of reach (try: look at this: calling: no route)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			state, book, off, policy := readings(Reading{At: noon, Tried: noon}), whole(), embedded(), everything
			test.spoil(&state, &book, &off, &policy)
			if diff := cmp.Diff(test.want, Warnings(state, book, off, policy, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShort(t *testing.T) {
	if got := Short(strings.Repeat("ü", 1000)); len(got) > warningMax+3 || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%d bytes: …%s", len(got), got[len(got)-6:])
	}
}

// Sources depend on what was read and on nothing else: another reading of the
// same is the same catalogue.
func TestSources(t *testing.T) {
	book := whole()
	book.OnDemand = Part[cloud.OnDemandPrice]{}
	off := embedded()
	off.Sources = []catalog.Provenance{{Source: "somebody"}}
	got := sources(book, off)
	want := []catalog.Provenance{
		{Source: "ec2:DescribeInstanceTypes", Date: "2026-11-20", Carries: "hardware"},
		{Source: "ec2:DescribeInstanceTypeOfferings", Date: "2026-11-20", Carries: "zones of sale"},
		{Source: "ec2:DescribeAvailabilityZones", Date: "2026-11-20", Carries: "zone ids"},
		{Source: "ec2:DescribeSpotPriceHistory", Date: "2026-11-20", Carries: "spot prices"},
		{Source: "the embedded catalogue", Date: "2025-05-28", Carries: "on-demand prices"},
		{Source: "somebody"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
