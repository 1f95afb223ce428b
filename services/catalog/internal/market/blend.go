package market

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Offline is what stands in for what cannot be read.
type Offline struct {
	catalog.Parts
	// Borrowed says that prices are another region's.
	Borrowed bool
}

// Blend makes the parts of a catalogue, all but the cluster: what the book has,
// and the embedded parts for what it lacks.
func Blend(b Book, off Offline, p Policy, now time.Time) catalog.Parts {
	out := catalog.Parts{
		Region: b.Region, Types: b.Types.Items, Offerings: b.Offerings.Items, Zones: b.Zones.Items, Spot: b.Spot.Items,
		OnDemand: fill(b.OnDemand.Items, off.OnDemand), Sources: sources(b, off), AsOf: asOf(b, off),
	}
	if len(out.Types) == 0 {
		out.Types = off.Types
	}
	if len(out.Offerings) == 0 {
		// Which id an embedded zone has is a guess, and goes with guessed zones only.
		out.Offerings, out.Zones = off.Offerings, off.Zones
	}
	if len(out.Spot) == 0 {
		out.Spot = off.Spot
	}
	if len(out.Spot) == 0 {
		out.Spot = atMost(out.OnDemand)
	}
	if p.Shifts {
		out.Shifted = inForce(b.Shifts.Items, now)
	}
	return out
}

// fill adds the embedded prices of types that the list lacks. Prices in another
// currency would look cheap or dear beside the others.
func fill(list, embedded []cloud.OnDemandPrice) []cloud.OnDemandPrice {
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

// atMost takes spot for as dear as on-demand, which EC2 does not exceed.
func atMost(prices []cloud.OnDemandPrice) []cloud.SpotPrice {
	var out []cloud.SpotPrice
	for _, price := range prices {
		out = append(out, cloud.SpotPrice{Type: price.Type, PerHour: price.PerHour})
	}
	return out
}

func inForce(shifts []cloud.ZonalShift, now time.Time) []string {
	var out []string
	for _, s := range shifts {
		if s.Until.IsZero() || now.Before(s.Until) {
			out = append(out, s.ZoneID)
		}
	}
	return out
}

// since is from when on a part has been the same; zero where the book lacks it.
// Zonal shifts date nothing: they are mostly none.
func (b Book) since(name Name) time.Time {
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

// asOf dates the prices: the last time at which one of them changed, or the age
// of the embedded ones where they stand in.
func asOf(b Book, off Offline) time.Time {
	if b.Spot.Since.IsZero() || b.OnDemand.Since.IsZero() {
		return off.AsOf
	}
	if b.OnDemand.Since.After(b.Spot.Since) {
		return b.OnDemand.Since
	}
	return b.Spot.Since
}

// sources name where each part is from, and the works that the embedded ones
// are made of.
func sources(b Book, off Offline) []catalog.Provenance {
	var live, embedded []catalog.Provenance
	for _, e := range schedule {
		if e.Name == Shifts {
			continue
		}
		if since := b.since(e.Name); !since.IsZero() {
			live = append(live, catalog.Provenance{Source: e.action, Date: since.Format(time.DateOnly), Carries: e.carries})
		} else {
			embedded = append(embedded, catalog.Provenance{
				Source: "the embedded catalogue", Date: off.AsOf.Format(time.DateOnly), Carries: e.carries,
			})
		}
	}
	return slices.Concat(live, embedded, off.Sources)
}
