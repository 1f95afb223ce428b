package catalog

import (
	"cmp"
	"slices"
	"time"
)

// Hardware is the part of an embedded catalogue that is the same in every region. Storing it once keeps the data of
// many regions small.
type Hardware struct {
	Sources []Provenance `json:"sources"`
	// Types have no offerings here.
	Types []InstanceType `json:"types"`
}

// Market is the part that differs by region: offerings and prices.
type Market struct {
	Region    string    `json:"region"`
	Partition string    `json:"partition"`
	AsOf      time.Time `json:"asOf"`
	Zones     []Zone    `json:"zones"`
	Prices    []Price   `json:"prices"`
}

// Zone is a zone's name in an account and its id, which is the same in every account.
type Zone struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Price is the price of one type in one region, in US dollars per hour; 0 if the source has no price.
type Price struct {
	Type     string  `json:"t"`
	OnDemand float64 `json:"d,omitempty"`
	Spot     float64 `json:"s,omitempty"`
	// Zones has bit i set if Market.Zones[i] offers the type.
	Zones uint64 `json:"z"`
}

// PriceList has the on-demand prices of a region without other data: the regions of GovCloud and of China.
type PriceList struct {
	Region string    `json:"region"`
	AsOf   time.Time `json:"asOf"`
	// Currency is empty for US dollars.
	Currency string  `json:"currency,omitempty"`
	Prices   []Price `json:"prices"`
}

// JoinMarket returns the catalogue of a market. It omits types that are missing in the hardware or that the market
// does not offer.
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

// zoneOfferings returns the offerings in the zones of the price, with or without prices.
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
