package catalog_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

func TestJoinMarket(t *testing.T) {
	both := []string{"on-demand", "spot"}
	hardware := catalog.Hardware{Types: []catalog.InstanceType{
		{Name: "a1.large", SupportedUsage: both}, {Name: "b1.large", SupportedUsage: both}, {Name: "c1.large", SupportedUsage: both},
	}}
	market := catalog.Market{
		Region: "r", Partition: "aws",
		Zones: []catalog.Zone{{Name: "ra", ID: "r-az1"}, {Name: "rb", ID: "r-az2"}, {Name: "rc", ID: "r-az3"}},
		Prices: []catalog.Price{
			{Type: "c1.large", OnDemand: 2, Zones: 0b010},
			{Type: "a1.large", OnDemand: 1, Spot: 0.5, Zones: 0b101},
			{Type: "b1.large", OnDemand: 1, Zones: 0}, // not offered
			{Type: "z9.large", OnDemand: 1, Zones: 1}, // no hardware
		},
	}
	want := []catalog.InstanceType{
		{Name: "a1.large", SupportedUsage: both, Offerings: []catalog.Offering{
			{"ra", "r-az1", "on-demand", 1, true}, {"ra", "r-az1", "spot", 0.5, true},
			{"rc", "r-az3", "on-demand", 1, true}, {"rc", "r-az3", "spot", 0.5, true},
		}},
		{Name: "c1.large", SupportedUsage: both, Offerings: []catalog.Offering{{"rb", "r-az2", "on-demand", 2, true}, {"rb", "r-az2", "spot", 0, false}}},
	}
	if diff := cmp.Diff(want, catalog.JoinMarket(hardware, market).Types); diff != "" {
		t.Error(diff)
	}
}

func TestValidateRejects(t *testing.T) {
	good := func() catalog.Catalogue {
		offers := func() []catalog.Offering {
			return []catalog.Offering{{"ra", "r-az1", "on-demand", 1, true}, {"ra", "r-az1", "spot", 0.5, true}}
		}
		one := catalog.InstanceType{Name: "a", Arch: catalog.AMD64, VCPU: 1, MemoryMiB: 1, Offerings: offers()}
		two := one
		two.Name, two.Offerings = "b", offers()
		return catalog.Catalogue{Region: "r", Types: []catalog.InstanceType{one, two}}
	}
	if err := good().Validate(); err != nil {
		t.Fatalf("a valid catalogue is rejected: %v", err)
	}
	tests := []struct {
		name, want string
		spoil      func(*catalog.Catalogue)
	}{
		{"no region", "has no region", func(c *catalog.Catalogue) { c.Region = "" }},
		{"unsorted types", "not sorted", func(c *catalog.Catalogue) { c.Types[0], c.Types[1] = c.Types[1], c.Types[0] }},
		{"duplicate type", "duplicate", func(c *catalog.Catalogue) { c.Types[1].Name = "a" }},
		{"architecture", `"x86_64"`, func(c *catalog.Catalogue) { c.Types[0].Arch = "x86_64" }},
		{"no CPU", "too small for a node", func(c *catalog.Catalogue) { c.Types[0].VCPU = 0 }},
		{"free", "has the price 0", func(c *catalog.Catalogue) { c.Types[0].Offerings[0].PricePerHour = 0 }},
		{"negative price", "has the price -1", func(c *catalog.Catalogue) { c.Types[0].Offerings[0].PricePerHour = -1 }},
		{"not a number", "has the price NaN", func(c *catalog.Catalogue) { c.Types[0].Offerings[0].PricePerHour = math.NaN() }},
		{"infinite", "has the price +Inf", func(c *catalog.Catalogue) { c.Types[0].Offerings[0].PricePerHour = math.Inf(1) }},
		{"unsorted offerings", "not sorted", func(c *catalog.Catalogue) { c.Types[0].Offerings[1].Zone = "a" }},
		{"duplicate offering", "duplicate offering", func(c *catalog.Catalogue) { c.Types[0].Offerings[1].CapacityType = "on-demand" }},
		{"duplicate reservation", "duplicate", func(c *catalog.Catalogue) {
			c.Reservations = []catalog.ReservationCount{{ID: "cr-1"}, {ID: "cr-1", Count: 1}}
		}},
		{"duplicate subnet", `subnet "subnet-1"`, func(c *catalog.Catalogue) { c.Subnets = []catalog.SubnetCount{{ID: "subnet-1"}, {ID: "subnet-1"}} }},
		{"negative addresses", "-1 addresses", func(c *catalog.Catalogue) { c.Subnets = []catalog.SubnetCount{{ID: "subnet-1", FreeIPs: -1}} }},
		{"duplicate placement group", `group "pg-1"`, func(c *catalog.Catalogue) { c.PlacementGroups = []catalog.PlacementGroup{{ID: "pg-1"}, {ID: "pg-1"}} }},
		{"negative reservation count", "-1 left", func(c *catalog.Catalogue) { c.Reservations = []catalog.ReservationCount{{ID: "cr-1", Count: -1}} }},
		{"no zone", "has no zone", func(c *catalog.Catalogue) {
			c.Types[0].Offerings = c.Types[0].Offerings[:1]
			c.Types[0].Offerings[0].Zone = ""
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := good()
			test.spoil(&c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
