package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Assemble is the inverse of Disassemble for every embedded catalogue.
func TestAssembleInvertsDisassemble(t *testing.T) {
	for _, region := range catalog.Regions() {
		want := embeddedCatalogues(t, region)
		if diff := cmp.Diff(want, catalog.Assemble(catalog.Disassemble(want))); diff != "" {
			t.Errorf("%s: %.2000s", region, diff)
		}
	}
}

var offeredTypes = catalog.InstanceType{
	Name: "m1.test", Arch: catalog.AMD64, VCPU: 1, MemoryMiB: 1024, SupportedUsage: []string{catalog.OnDemand, catalog.Spot},
}

// testParts offer one type in two zones.
func testParts(change func(*catalog.Parts)) catalog.Parts {
	p := catalog.Parts{
		Region: "eu-west-1", Types: []catalog.InstanceType{offeredTypes},
		Offerings: []cloud.TypeOffering{{Type: "m1.test", Zone: "eu-west-1b"}, {Type: "m1.test", Zone: "eu-west-1a"}},
		Zones:     []cloud.AvailabilityZone{{Name: "eu-west-1a", ID: "euw1-az3"}, {Name: "eu-west-1b", ID: "euw1-az1"}},
		OnDemand:  []cloud.OnDemandPrice{{Type: "m1.test", PerHour: 2, Currency: "USD"}},
		Spot:      []cloud.SpotPrice{{Type: "m1.test", Zone: "eu-west-1a", PerHour: 1}, {Type: "m1.test", Zone: "eu-west-1b", PerHour: 1.5}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestAssemble(t *testing.T) {
	const a, b, idA, idB = "eu-west-1a", "eu-west-1b", "euw1-az3", "euw1-az1"
	whole := []catalog.Offering{
		{a, idA, catalog.OnDemand, 2, true}, {a, idA, catalog.Spot, 1, true},
		{b, idB, catalog.OnDemand, 2, true}, {b, idB, catalog.Spot, 1.5, true},
	}
	shutA := []catalog.Offering{{a, idA, catalog.OnDemand, 2, false}, {a, idA, catalog.Spot, 1, false}, whole[2], whole[3]}
	for _, test := range []struct {
		name   string
		change func(*catalog.Parts)
		want   []catalog.Offering
	}{
		{"whole", nil, whole},
		{"shifted away from a zone", func(p *catalog.Parts) { p.Shifted = []string{idA} }, shutA},
		{"shifted away from an unknown zone", func(p *catalog.Parts) { p.Shifted = []string{"x"} }, whole},
		{"a zone that takes no launches", func(p *catalog.Parts) { p.Zones[0].Down = true }, shutA},
		{"not sold in a zone", func(p *catalog.Parts) { p.Offerings = p.Offerings[:1] }, whole[2:]},
		{"said twice", func(p *catalog.Parts) { p.Offerings = append(p.Offerings, p.Offerings...) }, whole},
		{"no on-demand price", func(p *catalog.Parts) { p.OnDemand = nil }, []catalog.Offering{
			{a, idA, catalog.OnDemand, 0, false}, whole[1], {b, idB, catalog.OnDemand, 0, false}, whole[3],
		}},
		{"no spot price in a zone", func(p *catalog.Parts) { p.Spot = p.Spot[:1] }, []catalog.Offering{
			whole[0], whole[1], whole[2], {b, idB, catalog.Spot, 0, false},
		}},
		{"no price in a zone that takes no launches", func(p *catalog.Parts) { p.Spot, p.Zones[1].Down = p.Spot[:1], true }, []catalog.Offering{
			whole[0], whole[1], {b, idB, catalog.OnDemand, 2, false},
		}},
		{"a spot price for any zone", func(p *catalog.Parts) { p.Spot = []cloud.SpotPrice{{Type: "m1.test", PerHour: 1}, p.Spot[1]} }, whole},
		{"no spot use", func(p *catalog.Parts) {
			p.Types[0].SupportedUsage = []string{catalog.OnDemand}
		}, []catalog.Offering{whole[0], whole[2]}},
		{"zone ids out of the price history", func(p *catalog.Parts) {
			p.Zones, p.Spot[0].ZoneID, p.Spot[1].ZoneID = nil, idA, idB
		}, whole},
		{"no zone ids", func(p *catalog.Parts) { p.Zones = nil }, []catalog.Offering{
			{a, "", catalog.OnDemand, 2, true}, {a, "", catalog.Spot, 1, true}, {b, "", catalog.OnDemand, 2, true}, {b, "", catalog.Spot, 1.5, true},
		}},
		{"no price at all", func(p *catalog.Parts) { p.Spot, p.OnDemand = nil, nil }, []catalog.Offering{
			{a, idA, catalog.OnDemand, 0, false}, {a, idA, catalog.Spot, 0, false}, {b, idB, catalog.OnDemand, 0, false}, {b, idB, catalog.Spot, 0, false},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := catalog.Assemble(testParts(test.change))
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
			got, _ := c.Find("m1.test")
			if diff := cmp.Diff(test.want, got.Offerings, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A type that is available only as capacity blocks is included without offerings; one that no zone offers is not.
func TestAssembleKeepsReservableTypes(t *testing.T) {
	block := func(p *catalog.Parts) { p.Types[0].SupportedUsage, p.OnDemand, p.Spot = nil, nil, nil }
	c := catalog.Assemble(testParts(block))
	if one, ok := c.Find("m1.test"); !ok || len(one.Offerings) > 0 {
		t.Errorf("found %t, with offerings %v", ok, one.Offerings)
	}
	if c.HasPrices() {
		t.Error("a catalogue without prices claims to have some")
	}
	if c := catalog.Assemble(testParts(func(p *catalog.Parts) { block(p); p.Offerings = nil })); len(c.Types) > 0 {
		t.Errorf("no zone offers %v", c.Types)
	}
}

func TestAssembleSetsCurrency(t *testing.T) {
	c := catalog.Assemble(testParts(func(p *catalog.Parts) { p.Region, p.OnDemand[0].Currency = "cn-north-1", "CNY" }))
	if c.Currency != "CNY" || c.Partition != "aws-cn" {
		t.Errorf("%q in partition %q", c.Currency, c.Partition)
	}
	if c := catalog.Assemble(testParts(nil)); c.Currency != "" || c.Partition != "aws" {
		t.Errorf("%q in partition %q", c.Currency, c.Partition)
	}
}

func TestPartitions(t *testing.T) {
	for _, test := range []struct {
		region, partition string
		listed            bool
	}{
		{"us-east-1", "aws", true}, {"cn-northwest-1", "aws-cn", true}, {"us-gov-west-1", "aws-us-gov", false},
		{"us-iso-east-1", "aws-iso", false}, {"us-isob-east-1", "aws-iso-b", false}, {"eusc-de-east-1", "aws-eusc", false},
	} {
		if got, listed := catalog.Partition(test.region), catalog.HasPriceList(test.region); got != test.partition || listed != test.listed {
			t.Errorf("%s: %s, listed %t", test.region, got, listed)
		}
	}
}

func TestOfflineParts(t *testing.T) {
	known, borrowed, err := catalog.OfflineParts("eu-west-1")
	if err != nil || borrowed {
		t.Fatalf("borrowed %t, %v", borrowed, err)
	}
	// Spot prices are the region's average and apply to zones of any name.
	if known.Spot[0].Zone != "" || len(known.Offerings) == 0 || known.Region != "eu-west-1" {
		t.Errorf("%s with %d offerings and the spot price %+v", known.Region, len(known.Offerings), known.Spot[0])
	}
	for region, want := range map[string]struct {
		currency string
		borrowed bool
	}{
		"us-gov-west-1": {"USD", false}, "us-gov-east-1": {"USD", false}, "us-gov-north-1": {"USD", true},
		"cn-north-1": {"CNY", false}, "cn-northwest-1": {"CNY", true},
	} {
		apart, borrowed, err := catalog.OfflineParts(region)
		if err != nil || borrowed != want.borrowed || len(apart.OnDemand) < 100 || apart.OnDemand[0].Currency != want.currency || apart.AsOf.Year() != 2026 {
			t.Errorf("%s: %d prices as of %s, borrowed %t (%v)", region, len(apart.OnDemand), apart.AsOf, borrowed, err)
		}
	}
	strange, borrowed, err := catalog.OfflineParts("mars-north-1")
	if err != nil || !borrowed {
		t.Fatalf("borrowed %t, %v", borrowed, err)
	}
	if len(strange.Types) < 850 || len(strange.OnDemand) < 850 || strange.Region != "mars-north-1" {
		t.Errorf("%s has %d types and %d prices", strange.Region, len(strange.Types), len(strange.OnDemand))
	}
	if len(strange.Offerings)+len(strange.Zones)+len(strange.Spot) > 0 {
		t.Error("an unknown region has instance types")
	}
}
