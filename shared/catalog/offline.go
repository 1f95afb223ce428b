package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// fallbackRegion is whose prices stand in for those of a region that the embedded catalogue does not know: they are
// wrong in amount, and nearly right in order, which is what choosing needs.
const fallbackRegion = "us-east-1"

// Offline is the embedded catalogue in parts, for those that cannot be read. Of a region that it does not know it has
// the hardware and, from another region, prices; Borrowed says so.
func Offline(region string) (parts Parts, borrowed bool, err error) {
	known := slices.Contains(Regions(), region)
	from := region
	if !known {
		from = fallbackRegion
	}
	c, err := Embedded(from)
	if err != nil {
		return Parts{}, false, err
	}
	h, err := hardware()
	if err != nil {
		return Parts{}, false, err
	}
	parts = Disassemble(c)
	parts.Region, parts.Spot = region, anywhere(parts.Spot)
	if !known {
		// Where is sold what is another region's own affair, and so is what spot costs.
		parts.Types, parts.Offerings, parts.Zones, parts.Spot = h.Types, nil, nil, nil
	}
	return parts, !known, nil
}

// anywhere makes prices that hold in any zone of those that are the average of all, because an account's zones may have
// other names than the embedded ones.
func anywhere(prices []cloud.SpotPrice) []cloud.SpotPrice {
	var out []cloud.SpotPrice
	for _, p := range prices {
		if n := len(out); n == 0 || out[n-1].Type != p.Type {
			out = append(out, cloud.SpotPrice{Type: p.Type, PerHour: p.PerHour})
		}
	}
	return out
}

// Disassemble takes a catalogue apart: Assemble makes the same of the parts, where on-demand prices are the same in all
// zones and everything is available.
func Disassemble(c Catalogue) Parts {
	p := Parts{Region: c.Region, AsOf: c.AsOf, Sources: c.Sources, Cluster: c.Cluster, Shifted: c.ShiftedZones}
	ids := map[string]string{}
	for _, t := range c.Types {
		p.add(t.Name, t.Offerings, cmp.Or(c.Currency, "USD"))
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

func (p *Parts) add(name string, offerings []Offering, currency string) {
	for _, o := range offerings {
		if at := (cloud.TypeOffering{Type: name, Zone: o.Zone}); !slices.Contains(p.Offerings[max(0, len(p.Offerings)-1):], at) {
			p.Offerings = append(p.Offerings, at)
		}
		switch o.CapacityType {
		case Spot:
			p.Spot = append(p.Spot, cloud.SpotPrice{Type: name, Zone: o.Zone, ZoneID: o.ZoneID, PerHour: o.PricePerHour})
		case OnDemand:
			if n := len(p.OnDemand); n == 0 || p.OnDemand[n-1].Type != name {
				p.OnDemand = append(p.OnDemand, cloud.OnDemandPrice{Type: name, PerHour: o.PricePerHour, Currency: currency})
			}
		}
	}
}
