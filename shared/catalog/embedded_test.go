package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

func embeddedCatalogues(t testing.TB, region string) catalog.Catalogue {
	t.Helper()
	c, err := catalog.EmbeddedCatalogue(region)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEmbeddedRegions(t *testing.T) {
	for _, region := range []string{
		"us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1", "ap-northeast-2", "ap-southeast-1",
	} {
		if !slices.Contains(catalog.Regions(), region) {
			t.Errorf("no embedded catalogue of %s", region)
		}
	}
	if !slices.IsSorted(catalog.Regions()) {
		t.Errorf("regions are not sorted: %v", catalog.Regions())
	}
}

func TestEmbeddedIsValid(t *testing.T) {
	for _, region := range catalog.Regions() {
		c := embeddedCatalogues(t, region)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", region, err)
		}
		if c.Region != region || c.Partition != "aws" {
			t.Errorf("%s: says region %s, partition %s", region, c.Region, c.Partition)
		}
		if c.AsOf.Before(time.Date(2025, 5, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: dated %s", region, c.AsOf)
		}
		if len(c.Types) < 280 {
			t.Errorf("%s: only %d types", region, len(c.Types))
		}
	}
}

func TestEmbeddedTypesAreComplete(t *testing.T) {
	for _, region := range catalog.Regions() {
		for _, it := range embeddedCatalogues(t, region).Types {
			if it.Network.ENIs < 1 || it.Network.IPv4PerENI < 2 || it.CPUManufacturer == "" {
				t.Errorf("%s %s is incomplete: %+v by %q", region, it.Name, it.Network, it.CPUManufacturer)
			}
			// No source has the clock speed of the largest high-memory types.
			if highMemory := strings.HasPrefix(it.Name, "u-"); it.ClockMHz < 1000 && !highMemory || it.ClockMHz > 5000 {
				t.Errorf("%s %s has a clock of %d MHz", region, it.Name, it.ClockMHz)
			}
			if it.Hypervisor == "" != it.BareMetal {
				t.Errorf("%s %s: hypervisor %q, bare metal %t", region, it.Name, it.Hypervisor, it.BareMetal)
			}
			if len(it.Offerings) == 0 || len(it.SupportedUsage) == 0 {
				t.Errorf("%s %s cannot be bought", region, it.Name)
			}
		}
	}
}

// A spot price above the on-demand price would make plans that compare the two wrong.
func TestEmbeddedSpotCostsNoMore(t *testing.T) {
	for _, region := range catalog.Regions() {
		for _, it := range embeddedCatalogues(t, region).Types {
			prices := map[string]map[string]float64{catalog.OnDemand: {}, catalog.Spot: {}}
			for _, o := range it.Offerings {
				prices[o.CapacityType][o.Zone] = o.PricePerHour
				if !strings.HasPrefix(o.Zone, region) || len(o.Zone) != len(region)+1 || !strings.Contains(o.ZoneID, "-az") {
					t.Errorf("%s %s: zone %q, id %q", region, it.Name, o.Zone, o.ZoneID)
				}
			}
			for zone, spot := range prices[catalog.Spot] {
				if onDemand, both := prices[catalog.OnDemand][zone]; both && spot > onDemand {
					t.Errorf("%s %s: spot %v above on-demand %v", zone, it.Name, spot, onDemand)
				}
			}
		}
	}
}

func TestEmbeddedKnownTypes(t *testing.T) {
	if n := len(embeddedCatalogues(t, "us-east-1").Types); n < 850 {
		t.Errorf("us-east-1 has %d types, want 850 or more", n)
	}
	tests := []struct {
		name, arch      string
		vcpu, memoryMiB int64
		enis, ipv4      int64
	}{
		{"t4g.medium", catalog.ARM64, 2, 4096, 3, 6},
		{"m5.large", catalog.AMD64, 2, 8192, 3, 10},
		{"c7g.16xlarge", catalog.ARM64, 64, 131072, 15, 50},
		{"p4d.24xlarge", catalog.AMD64, 96, 1179648, 15, 50},
		{"trn1.32xlarge", catalog.AMD64, 128, 524288, 5, 50},
	}
	for _, test := range tests {
		it, found := embeddedCatalogues(t, "us-east-1").Find(test.name)
		if !found || it.Arch != test.arch || it.VCPU != test.vcpu || it.MemoryMiB != test.memoryMiB ||
			it.Network.ENIs != test.enis || it.Network.IPv4PerENI != test.ipv4 {
			t.Errorf("%s: found %t, %+v, want %+v", test.name, found, it, test)
		}
	}
}

func TestEmbeddedNamesItsSources(t *testing.T) {
	sources := embeddedCatalogues(t, "us-east-1").Sources
	if len(sources) < 3 {
		t.Fatalf("%d sources, want at least 3", len(sources))
	}
	for _, s := range sources {
		if s.Source == "" || s.License == "" || s.Date == "" || s.Carries == "" {
			t.Errorf("a source is not fully described: %+v", s)
		}
	}
}

func TestEmbeddedCatalogueListsKnownRegions(t *testing.T) {
	_, err := catalog.EmbeddedCatalogue("mars-north-1")
	if err == nil || !strings.Contains(err.Error(), "mars-north-1") || !strings.Contains(err.Error(), "eu-central-1") {
		t.Errorf("error = %v, want it to name the region and the available ones", err)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	clone := embeddedCatalogues(t, "us-east-1").Clone()
	clone.Types[0].Name, clone.Types[1].Offerings[0].Available = "changed", false
	again := embeddedCatalogues(t, "us-east-1")
	if again.Types[0].Name == "changed" || !again.Types[1].Offerings[0].Available {
		t.Error("a change of a clone changed the embedded catalogue")
	}
}
