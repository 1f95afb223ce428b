package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Parts are the inputs of a catalogue. Each was read separately, or replaces data that could not be read.
type Parts struct {
	Region string
	// AsOf and Sources are copied to the catalogue.
	AsOf    time.Time
	Sources []Provenance
	Cluster ClusterFacts
	// Embedded is copied to the catalogue.
	Embedded bool
	// Types have no offerings.
	Types     []InstanceType
	Offerings []cloud.TypeOffering
	Zones     []cloud.AvailabilityZone
	OnDemand  []cloud.OnDemandPrice
	// Spot prices without a zone apply to every zone that has no price of its own.
	Spot []cloud.SpotPrice
	// Shifted are the ids of the zones from which the cluster is shifted away.
	Shifted []string
}

// Assemble returns the catalogue of all types that EC2 offers in a zone. An offering in a zone that accepts no
// launches, or from which the cluster is shifted away, keeps its price and is not available. An offering without a
// price is not available either; it is included if the zone accepts launches, because a NodeOverlay can give it a
// price. A type with zones but no offerings is included, because capacity reservations may have it.
func Assemble(p Parts) Catalogue {
	desk := newOfferingIndex(p)
	c := Catalogue{
		Region: p.Region, Partition: Partition(p.Region), AsOf: p.AsOf, Sources: p.Sources, Cluster: p.Cluster,
		Currency: currencyOf(p.OnDemand), ShiftedZones: sortedUnique(p.Shifted), Embedded: p.Embedded, Types: make([]InstanceType, 0, len(p.Types)),
	}
	for _, t := range p.Types {
		if len(desk.zones[t.Name]) > 0 {
			t.Offerings = desk.offeringsOf(t)
			c.Types = append(c.Types, t)
		}
	}
	slices.SortFunc(c.Types, func(a, b InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	c.Types = slices.CompactFunc(c.Types, func(a, b InstanceType) bool { return a.Name == b.Name })
	return c
}

// offeringIndex indexes prices and zones.
type offeringIndex struct {
	zones    map[string][]string // by type
	ids      map[string]string   // by name
	closed   map[string]bool     // by name
	onDemand map[string]float64
	spot     map[cloud.TypeOffering]float64
}

func newOfferingIndex(p Parts) offeringIndex {
	d := offeringIndex{
		zones: map[string][]string{}, ids: map[string]string{}, closed: map[string]bool{},
		onDemand: map[string]float64{}, spot: map[cloud.TypeOffering]float64{},
	}
	for _, o := range p.Offerings {
		d.zones[o.Type] = append(d.zones[o.Type], o.Zone)
	}
	for _, s := range p.Spot {
		d.spot[cloud.TypeOffering{Type: s.Type, Zone: s.Zone}] = s.PerHour
		if s.ZoneID != "" {
			d.ids[s.Zone] = s.ZoneID
		}
	}
	for _, z := range p.Zones {
		d.ids[z.Name], d.closed[z.Name] = z.ID, z.Down
	}
	for name, id := range d.ids {
		d.closed[name] = d.closed[name] || slices.Contains(p.Shifted, id)
	}
	for _, o := range p.OnDemand {
		d.onDemand[o.Type] = o.PerHour
	}
	return d
}

func (d offeringIndex) offeringsOf(t InstanceType) []Offering {
	var all []Offering
	for _, zone := range sortedUnique(d.zones[t.Name]) {
		for _, kind := range t.SupportedUsage {
			price, open := d.priceOf(t.Name, zone, kind), !d.closed[zone]
			if price > 0 || open {
				all = append(all, Offering{zone, d.ids[zone], kind, price, open && price > 0})
			}
		}
	}
	slices.SortFunc(all, compareOfferings)
	return all
}

func (d offeringIndex) priceOf(name, zone, capacityType string) float64 {
	if capacityType == OnDemand {
		return d.onDemand[name]
	}
	return cmp.Or(d.spot[cloud.TypeOffering{Type: name, Zone: zone}], d.spot[cloud.TypeOffering{Type: name}])
}

// currencyOf returns the currency, or "" for US dollars.
func currencyOf(prices []cloud.OnDemandPrice) string {
	if len(prices) > 0 && prices[0].Currency != "USD" {
		return prices[0].Currency
	}
	return ""
}

func sortedUnique(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
