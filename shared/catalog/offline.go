package catalog

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// fallbackRegion is the region whose prices replace those of unknown regions: their amounts are wrong, but their
// order is nearly right, which is enough to choose types.
const fallbackRegion = "us-east-1"

// partitionRegions are the regions of other partitions whose prices replace those of the partition's unknown regions.
var partitionRegions = map[string]string{"aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}

// OfflineParts returns the embedded catalogue as Parts, to replace data that could not be read. For an unknown region
// it returns only hardware and on-demand prices; borrowed reports that the prices are another region's.
func OfflineParts(region string) (parts Parts, borrowed bool, err error) {
	if slices.Contains(Regions(), region) {
		c, err := EmbeddedCatalogue(region)
		if err != nil {
			return Parts{}, false, err
		}
		parts = Disassemble(c)
		parts.Spot = mergeZones(parts.Spot)
		return parts, false, nil
	}
	h, err := embeddedHardware()
	if err != nil {
		return Parts{}, false, err
	}
	// Availability and spot prices differ too much between regions to be replaced.
	parts = Parts{Region: region, Types: h.Types, Sources: h.Sources}
	from := region
	if !hasStoredPrices(from) {
		from = partitionRegions[Partition(region)]
	}
	if hasStoredPrices(from) {
		err = parts.addStoredPrices(from)
		return parts, from != region, err
	}
	c, err := EmbeddedCatalogue(fallbackRegion)
	if err != nil {
		return Parts{}, false, err
	}
	parts.OnDemand, parts.AsOf = Disassemble(c).OnDemand, c.AsOf
	return parts, true, nil
}

// pricesPrefix is the prefix of the stored price lists.
const pricesPrefix = "prices-"

func hasStoredPrices(region string) bool {
	_, err := storedFiles.Open(path.Join("data", pricesPrefix+region+storedSuffix))
	return err == nil
}

// addStoredPrices adds the prices of an embedded list.
func (p *Parts) addStoredPrices(region string) error {
	list, err := decodeStored[PriceList](pricesPrefix + region)
	if err != nil {
		return err
	}
	p.AsOf = list.AsOf
	for _, price := range list.Prices {
		p.OnDemand = append(p.OnDemand, cloud.OnDemandPrice{Type: price.Type, PerHour: price.OnDemand, Currency: cmp.Or(list.Currency, "USD")})
	}
	return nil
}

// mergeZones removes the zones from average spot prices, because an account's zones may have other names than the
// embedded ones.
func mergeZones(prices []cloud.SpotPrice) []cloud.SpotPrice {
	var out []cloud.SpotPrice
	for _, p := range prices {
		if n := len(out); n == 0 || out[n-1].Type != p.Type {
			out = append(out, cloud.SpotPrice{Type: p.Type, PerHour: p.PerHour})
		}
	}
	return out
}

// Disassemble splits a catalogue into parts. Assemble restores it if on-demand prices are equal in all zones and
// everything is available.
func Disassemble(c Catalogue) Parts {
	p := Parts{Region: c.Region, AsOf: c.AsOf, Sources: c.Sources, Cluster: c.Cluster, Shifted: c.ShiftedZones}
	ids := map[string]string{}
	for _, t := range c.Types {
		p.addOfferings(t.Name, t.Offerings, cmp.Or(c.Currency, "USD"))
		for _, o := range t.Offerings {
			ids[o.Zone] = o.ZoneID
		}
		t.Offerings = nil
		p.Types = append(p.Types, t)
	}
	for _, zone := range slices.Sorted(maps.Keys(ids)) {
		p.Zones = append(p.Zones, cloud.AvailabilityZone{Name: zone, ID: ids[zone]})
	}
	return p
}

func (p *Parts) addOfferings(name string, offerings []Offering, currency string) {
	for _, o := range offerings {
		if at := (cloud.TypeOffering{Type: name, Zone: o.Zone}); !slices.Contains(p.Offerings[max(0, len(p.Offerings)-1):], at) {
			p.Offerings = append(p.Offerings, at)
		}
		switch {
		case !o.HasPrice():
		case o.CapacityType == Spot:
			p.Spot = append(p.Spot, cloud.SpotPrice{Type: name, Zone: o.Zone, ZoneID: o.ZoneID, PerHour: o.PricePerHour})
		case o.CapacityType == OnDemand:
			if n := len(p.OnDemand); n == 0 || p.OnDemand[n-1].Type != name {
				p.OnDemand = append(p.OnDemand, cloud.OnDemandPrice{Type: name, PerHour: o.PricePerHour, Currency: currency})
			}
		}
	}
}
