package catalog

import (
	"cmp"
	"slices"
	"time"
)

// Hardware is the half of an embedded catalogue that is the same in every region. Storing it once, apart from prices,
// is what keeps many regions small.
type Hardware struct {
	Sources []Provenance `json:"sources"`
	// Types carry no offerings here.
	Types []InstanceType `json:"types"`
}

// Market is the other half: what one region sells, and for how much.
type Market struct {
	Region    string    `json:"region"`
	Partition string    `json:"partition"`
	AsOf      time.Time `json:"asOf"`
	Zones     []Zone    `json:"zones"`
	Prices    []Price   `json:"prices"`
}

// Zone pairs a zone's name in an account with the id that means the same place in every account.
type Zone struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Price is what one type costs in one region, in US dollars per hour; 0 means that the source has no price.
type Price struct {
	Type     string  `json:"t"`
	OnDemand float64 `json:"d,omitempty"`
	Spot     float64 `json:"s,omitempty"`
	// Zones has bit i set when Market.Zones[i] offers the type.
	Zones uint64 `json:"z"`
}

// PriceList is what on-demand costs in a region of which nothing else is known: the regions of GovCloud and of China.
type PriceList struct {
	Region string    `json:"region"`
	AsOf   time.Time `json:"asOf"`
	// Currency is empty for US dollars.
	Currency string  `json:"currency,omitempty"`
	Prices   []Price `json:"prices"`
}

// JoinMarket makes the catalogue of a market. Prices of types that the hardware does not know are left out, and so are
// types that the market does not sell.
func JoinMarket(hardware Hardware, market Market) Catalogue {
	byName := make(map[string]int, len(hardware.Types))
	for i, t := range hardware.Types {
		byName[t.Name] = i
	}
	c := Catalogue{Region: market.Region, Partition: market.Partition, AsOf: market.AsOf, Sources: hardware.Sources}
	c.Types = make([]InstanceType, 0, len(market.Prices))
	for _, price := range market.Prices {
		i, known := byName[price.Type]
		if !known {
			continue
		}
		t := hardware.Types[i]
		if t.Offerings = zoneOfferings(t, price, market.Zones); len(t.Offerings) > 0 {
			c.Types = append(c.Types, t)
		}
	}
	slices.SortFunc(c.Types, func(a, b InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	return c
}

// zoneOfferings are in the zones of the price, with a price or without one.
func zoneOfferings(t InstanceType, price Price, zones []Zone) []Offering {
	var all []Offering
	prices := map[string]float64{OnDemand: price.OnDemand, Spot: price.Spot}
	for i, zone := range zones {
		if price.Zones&(1<<i) == 0 {
			continue
		}
		for _, kind := range t.SupportedUsage {
			all = append(all, Offering{zone.Name, zone.ID, kind, prices[kind], prices[kind] > 0})
		}
	}
	slices.SortFunc(all, compareOfferings)
	return all
}

func compareOfferings(a, b Offering) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
}
