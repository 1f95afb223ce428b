package memcloud

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// The actions that read the region's offerings.
const (
	DescribeInstanceTypes         Action = "ec2:DescribeInstanceTypes"
	DescribeInstanceTypeOfferings Action = "ec2:DescribeInstanceTypeOfferings"
	DescribeAvailabilityZones     Action = "ec2:DescribeAvailabilityZones"
	DescribeSpotPriceHistory      Action = "ec2:DescribeSpotPriceHistory"
	GetProducts                   Action = "pricing:GetProducts"
	GetManagedResource            Action = "arc-zonal-shift:GetManagedResource"
)

var (
	_ cloud.Market      = (*Cloud)(nil)
	_ cloud.Prices      = (*Cloud)(nil)
	_ cloud.ZonalShifts = (*Cloud)(nil)
)

// InstanceTypes returns the catalogue's hardware, by name, in EC2's spelling.
func (c *Cloud) InstanceTypes(ctx context.Context) ([]cloud.InstanceType, error) {
	var out []cloud.InstanceType
	err := c.call(ctx, DescribeInstanceTypes, func(time.Time) error {
		for _, name := range slices.Sorted(maps.Keys(c.types)) {
			out = append(out, described(c.types[name]))
		}
		return nil
	})
	return out, err
}

// TypeOfferings returns which zone offers which type with any capacity type.
func (c *Cloud) TypeOfferings(ctx context.Context) ([]cloud.TypeOffering, error) {
	var out []cloud.TypeOffering
	err := c.call(ctx, DescribeInstanceTypeOfferings, func(time.Time) error {
		for _, o := range c.sold() {
			out = append(out, cloud.TypeOffering{Type: o.InstanceType, Zone: o.Zone})
		}
		out = slices.Compact(out)
		return nil
	})
	return out, err
}

// AvailabilityZones returns the catalogue's zones, by name.
func (c *Cloud) AvailabilityZones(ctx context.Context) ([]cloud.AvailabilityZone, error) {
	var out []cloud.AvailabilityZone
	err := c.call(ctx, DescribeAvailabilityZones, func(time.Time) error {
		for name, id := range c.sortedZones() {
			out = append(out, cloud.AvailabilityZone{Name: name, ID: id, Down: c.down[name]})
		}
		return nil
	})
	return out, err
}

// SpotPrices returns the current prices: the model has no price history.
func (c *Cloud) SpotPrices(ctx context.Context, _ time.Time) ([]cloud.SpotPrice, error) {
	var out []cloud.SpotPrice
	err := c.call(ctx, DescribeSpotPriceHistory, func(time.Time) error {
		ids := maps.Collect(c.sortedZones())
		for _, o := range c.sold() {
			if o.CapacityType == cloud.Spot {
				out = append(out, cloud.SpotPrice{Type: o.InstanceType, Zone: o.Zone, ZoneID: ids[o.Zone], PerHour: c.offers[o].price})
			}
		}
		return nil
	})
	return out, err
}

// OnDemandPrices returns the highest price of each type, which is equal in all zones unless SetPrice changed one.
func (c *Cloud) OnDemandPrices(ctx context.Context, _ string) ([]cloud.OnDemandPrice, error) {
	var out []cloud.OnDemandPrice
	err := c.call(ctx, GetProducts, func(time.Time) error {
		prices := map[string]float64{}
		for _, o := range c.sold() {
			if o.CapacityType == cloud.OnDemand {
				prices[o.InstanceType] = max(prices[o.InstanceType], c.offers[o].price)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(prices)) {
			out = append(out, cloud.OnDemandPrice{Type: name, PerHour: prices[name], Currency: "USD"})
		}
		return nil
	})
	return out, err
}

// ZonalShifts returns the shifts in force, for any resource.
func (c *Cloud) ZonalShifts(ctx context.Context, _ string) ([]cloud.ZonalShift, error) {
	var out []cloud.ZonalShift
	err := c.call(ctx, GetManagedResource, func(now time.Time) error {
		for _, s := range c.shifts {
			if s.Until.IsZero() || now.Before(s.Until) {
				out = append(out, s)
			}
		}
		return nil
	})
	return out, err
}

// Shift replaces the zonal shifts.
func (c *Cloud) Shift(shifts ...cloud.ZonalShift) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shifts = shifts
}

// SetZoneDown sets whether a zone is described as unavailable. It does not affect launches; Block does.
func (c *Cloud) SetZoneDown(zone string, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		c.down = map[string]bool{}
	}
	c.down[zone] = down
}

// Withdraw removes the offerings that match the pattern.
func (c *Cloud) Withdraw(pattern event.Offering) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.offers, func(o event.Offering, _ *offer) bool { return covers(pattern, o) })
}

// sold returns all offerings with a price, sorted.
func (c *Cloud) sold() []event.Offering {
	var out []event.Offering
	for o, what := range c.offers {
		if what.price > 0 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b event.Offering) int {
		return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return out
}

// described returns EC2's description of a type.
func described(t catalog.InstanceType) cloud.InstanceType {
	out := cloud.InstanceType{
		Name: t.Name, Architectures: []string{"x86_64"}, VCPU: t.VCPU, MemoryMiB: t.MemoryMiB, BareMetal: t.BareMetal,
		Burstable: t.Burstable, Hypervisor: t.Hypervisor, Manufacturer: t.CPUManufacturer, ClockGHz: float64(t.ClockMHz) / 1000,
		UsageClasses: slices.Clone(t.SupportedUsage), Storage: cloud.InstanceStore(t.Storage),
		EBS: cloud.EBS{Optimized: t.EBSMbps > 0, MaximumMbps: t.EBSMbps, Attachments: t.Volumes.Count, Dedicated: t.Volumes.Dedicated},
		Network: cloud.InstanceNetwork{
			Interfaces: t.Network.ENIs, IPv4: t.Network.IPv4PerENI, Cards: t.Network.Cards, EFAs: t.Network.EFAs,
			BaselineGbps: float64(t.Network.Mbps) / 1000, EncryptionInTransit: t.EncryptionInTransit,
		},
		Enclaves: t.Enclaves, NestedVirtualization: t.NestedVirtualization,
	}
	if t.Arch == catalog.ARM64 {
		out.Architectures = []string{"arm64"}
	}
	for _, g := range t.GPUs {
		out.GPUs = append(out.GPUs, cloud.Device{Name: g.Name, Manufacturer: g.Manufacturer, Count: g.Count, MemoryMiB: g.MemoryMiB})
	}
	for _, a := range t.Accelerators {
		d := cloud.Device{Name: a.Name, Manufacturer: a.Manufacturer, Count: a.Count, Cores: a.CoresPerDevice}
		if a.CoresPerDevice > 0 {
			out.Neuron = append(out.Neuron, d)
		} else {
			out.Inference = append(out.Inference, d)
		}
	}
	return out
}
