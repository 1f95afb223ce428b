package memcloud

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Small returns a catalogue of six types in three zones, for tests that do not need all types. Its prices are close
// to those of us-west-2.
func Small(region string) catalog.Catalogue {
	out := catalog.Catalogue{Region: region, Partition: "aws", AsOf: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, t := range []struct {
		name, arch, maker string
		vcpu, gib         int64
		price             float64
	}{
		{"c6g.large", "arm64", "AWS", 2, 4, 0.068},
		{"c6i.large", "amd64", "Intel", 2, 4, 0.085},
		{"c6i.xlarge", "amd64", "Intel", 4, 8, 0.17},
		{"m6g.large", "arm64", "AWS", 2, 8, 0.077},
		{"m6i.large", "amd64", "Intel", 2, 8, 0.096},
		{"m6i.xlarge", "amd64", "Intel", 4, 16, 0.192},
	} {
		out.Types = append(out.Types, catalog.InstanceType{
			Name: t.name, Arch: t.arch, OS: []string{"linux"}, VCPU: t.vcpu, MemoryMiB: t.gib << 10,
			Network:    catalog.Network{ENIs: 3, IPv4PerENI: 10, Cards: 1},
			Hypervisor: "nitro", CPUManufacturer: t.maker,
			SupportedUsage: []string{cloud.OnDemand, cloud.Spot},
			Offerings:      smallOfferings(region, t.price),
		})
	}
	return out
}

func smallOfferings(region string, price float64) []catalog.Offering {
	var out []catalog.Offering
	for i, letter := range []string{"a", "b", "c"} {
		zone, zoneID := region+letter, "usw2-az"+string(rune('1'+i))
		out = append(out,
			catalog.Offering{Zone: zone, ZoneID: zoneID, CapacityType: cloud.OnDemand, PricePerHour: price, Available: true},
			catalog.Offering{Zone: zone, ZoneID: zoneID, CapacityType: cloud.Spot, PricePerHour: price * (0.35 + 0.02*float64(i)), Available: true})
	}
	return out
}
