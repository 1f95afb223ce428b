package catalog

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// readingMax is how long one tick may read. What is left is read on the next,
// so that a slow part cannot keep the others from ever being remembered.
const readingMax = 80 * time.Second

// sells reads what is due of the market and makes the catalogue of all that is
// known of it, with warnings about what is not as it should be.
func (s Service) sells(ctx context.Context) (catalog.Catalogue, []string, error) {
	offline, err := s.offline()
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	state, book, err := s.recalled(ctx)
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	before := book.Cluster.Since
	warnings, read, err := s.read(ctx, &state, &book)
	if err == nil && (read || !book.Cluster.Since.Equal(before)) {
		err = s.remember(ctx, state, book)
	}
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	now := s.Now().UTC()
	parts := market.Blend(book, offline, s.policy(), now)
	parts.Cluster = facts(book.Cluster.Items[0])
	doc := catalog.Assemble(parts)
	if !doc.HasPrices() {
		return doc, nil, fault.E("assembling the catalogue of "+s.Region, fault.Invalid, state.Failed()).
			WithHint("allow the calls that failed: without them it is not known what the region sells")
	}
	return doc, append(warnings, market.Warnings(state, book, offline, s.policy(), now)...), nil
}

func (s Service) policy() market.Policy {
	return market.Policy{Isolated: s.Isolated, Listed: catalog.Listed(s.Region), Shifts: s.Shifts != nil}
}

func (s Service) offline() (market.Offline, error) {
	parts, borrowed, err := catalog.Offline(s.Region)
	if err != nil {
		return market.Offline{}, fault.E("reading the embedded catalogue", fault.Bug, err)
	}
	return market.Offline{Parts: parts, Borrowed: borrowed}, nil
}

// read reads the cluster and the parts that are due into the book. Only a
// cluster that was never described is an error: no node could join it.
func (s Service) read(ctx context.Context, state *market.State, book *market.Book) (warnings []string, read bool, err error) {
	began := s.Now().UTC()
	info, err := s.describe(ctx)
	switch {
	case err == nil:
		book.Cluster = book.Cluster.Next([]cloud.ClusterInfo{info}, began)
	case len(book.Cluster.Items) == 0 || fault.Is(err, fault.Missing) || ctx.Err() != nil:
		return nil, false, err
	default:
		warnings = append(warnings, market.Short("the cluster: as it was described before, because of this: "+err.Error()))
	}
	for _, name := range market.Due(*state, s.policy(), began) {
		if s.Now().Sub(began) > readingMax {
			break
		}
		err := s.part(ctx, name, book)
		if ctx.Err() != nil {
			return nil, false, err
		}
		state.Readings[name] = state.Readings[name].After(s.Now(), err)
		read = true
	}
	return warnings, read, nil
}

// part reads one part into the book. The book keeps what it has on an error.
func (s Service) part(ctx context.Context, name market.Name, book *market.Book) error {
	now := s.Now().UTC()
	switch name {
	case market.Types:
		return renew(&book.Types, now, func() ([]catalog.InstanceType, error) { return s.hardware(ctx) })
	case market.Offerings:
		return renew(&book.Offerings, now, func() ([]cloud.TypeOffering, error) { return s.Market.TypeOfferings(ctx) })
	case market.Zones:
		return renew(&book.Zones, now, func() ([]cloud.AvailabilityZone, error) { return s.Market.AvailabilityZones(ctx) })
	case market.Spot:
		return renew(&book.Spot, now, func() ([]cloud.SpotPrice, error) { return s.Market.SpotPrices(ctx, now) })
	case market.OnDemand:
		return renew(&book.OnDemand, now, func() ([]cloud.OnDemandPrice, error) { return s.Prices.OnDemandPrices(ctx, s.Region) })
	default:
		shifts, err := s.Shifts.ZonalShifts(ctx, book.Cluster.Items[0].ARN)
		if err == nil {
			book.Shifts = book.Shifts.Next(shifts, now)
		}
		return err
	}
}

// renew replaces a part by what was read. Nothing at all is no answer: a region
// that sells nothing does not exist.
func renew[T any](part *market.Part[T], now time.Time, read func() ([]T, error)) error {
	items, err := read()
	if err == nil && len(items) == 0 {
		err = fault.F("reading the market", fault.Invalid, "the answer is an empty list")
	}
	if err != nil {
		return err
	}
	*part = part.Next(items, now)
	return nil
}

// hardware is the types on which a node can run.
func (s Service) hardware(ctx context.Context) ([]catalog.InstanceType, error) {
	described, err := s.Market.InstanceTypes(ctx)
	if err != nil {
		return nil, err
	}
	var out []catalog.InstanceType
	for _, d := range described {
		if t, ok := catalog.TypeOf(d); ok {
			out = append(out, t)
		}
	}
	return out, nil
}
