package market

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Offline has the embedded parts, which replace parts that cannot be read.
type Offline struct {
	catalog.Parts
	// FromOtherRegion is set if the prices come from another region.
	FromOtherRegion bool
}

// BuildParts returns the parts of a catalogue, except the cluster: the parts of the cache, and
// embedded parts for the ones that it lacks.
func BuildParts(b CachedParts, off Offline, p Policy, now time.Time) catalog.Parts {
	out := catalog.Parts{
		Region: b.Region, Types: b.Types.Items, Offerings: b.Offerings.Items, Zones: b.Zones.Items, Spot: b.Spot.Items,
		OnDemand: addMissingPrices(b.OnDemand.Items, off.OnDemand), Sources: listSources(b, off), AsOf: pricesAsOf(b, off),
	}
	if len(out.Types) == 0 {
		out.Types, out.Embedded = off.Types, true
	}
	if len(out.Offerings) == 0 {
		// The ids of embedded zones are guesses, so they are used with embedded offerings only.
		out.Offerings, out.Zones, out.Embedded = off.Offerings, off.Zones, true
	}
	if len(out.Spot) == 0 {
		out.Spot = off.Spot
	}
	if len(out.Spot) == 0 {
		out.Spot = spotFromOnDemand(out.OnDemand)
	}
	if p.Shifts {
		out.Shifted = activeShifts(b.Shifts.Items, now)
	}
	return out
}

// addMissingPrices adds the embedded prices of types that the list lacks. It skips prices
// in another currency, because they cannot be compared.
func addMissingPrices(list, embedded []cloud.OnDemandPrice) []cloud.OnDemandPrice {
	if len(list) == 0 {
		return embedded
	}
	have := map[string]bool{}
	for _, price := range list {
		have[price.Type] = true
	}
	out := slices.Clone(list)
	for _, price := range embedded {
		if !have[price.Type] && price.Currency == list[0].Currency {
			out = append(out, price)
		}
	}
	return out
}

// spotFromOnDemand returns the on-demand prices as spot prices, which do not exceed them.
func spotFromOnDemand(prices []cloud.OnDemandPrice) []cloud.SpotPrice {
	var out []cloud.SpotPrice
	for _, price := range prices {
		out = append(out, cloud.SpotPrice{Type: price.Type, PerHour: price.PerHour})
	}
	return out
}

func activeShifts(shifts []cloud.ZonalShift, now time.Time) []string {
	var out []string
	for _, s := range shifts {
		if s.Until.IsZero() || now.Before(s.Until) {
			out = append(out, s.ZoneID)
		}
	}
	return out
}

// changedAt returns the time of a part's last change, or zero if the cache lacks it. It is
// zero for zonal shifts, because an empty list is their usual value.
func (b CachedParts) changedAt(name PartName) time.Time {
	switch name {
	case Types:
		return b.Types.Since
	case Offerings:
		return b.Offerings.Since
	case Zones:
		return b.Zones.Since
	case Spot:
		return b.Spot.Since
	case OnDemand:
		return b.OnDemand.Since
	default:
		return time.Time{}
	}
}

// pricesAsOf returns the time of the prices' last change, or the date of the embedded
// prices if they are used.
func pricesAsOf(b CachedParts, off Offline) time.Time {
	if b.Spot.Since.IsZero() || b.OnDemand.Since.IsZero() {
		return off.AsOf
	}
	if b.OnDemand.Since.After(b.Spot.Since) {
		return b.OnDemand.Since
	}
	return b.Spot.Since
}

// listSources returns the source of each part, and the sources of the embedded catalogue.
func listSources(b CachedParts, off Offline) []catalog.Provenance {
	var live, embedded []catalog.Provenance
	for _, e := range schedule {
		if e.PartName == Shifts {
			continue
		}
		if since := b.changedAt(e.PartName); !since.IsZero() {
			live = append(live, catalog.Provenance{Source: e.action, Date: since.Format(time.DateOnly), Carries: e.content})
		} else {
			embedded = append(embedded, catalog.Provenance{
				Source: "the embedded catalogue", Date: off.AsOf.Format(time.DateOnly), Carries: e.content,
			})
		}
	}
	return slices.Concat(live, embedded, off.Sources)
}
