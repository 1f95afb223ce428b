package catalog

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// readingMax is how long one tick may start reading parts. The next tick reads the remaining parts,
// so a slow part cannot prevent the others from being stored.
const readingMax = 80 * time.Second

// storingTime is what remains of a message's time after reading, to store and publish the parts.
const storingTime = 20 * time.Second

// readMarket reads the parts of the market that are due. It returns the catalogue of all
// parts, and warnings about parts that are outdated or replaced.
func (s Service) readMarket(ctx context.Context) (catalog.Catalogue, []string, error) {
	offline, err := s.readOffline()
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	state, cached, err := s.loadMarket(ctx)
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	before := cached.Cluster.Since
	warnings, read, err := s.readDueParts(ctx, &state, &cached)
	if err == nil && (read || !cached.Cluster.Since.Equal(before)) {
		err = s.storeMarket(ctx, state, cached)
	}
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	doc, stale, err := s.assembleMarket(state, cached, offline, clusterFacts(cached.Cluster.Items[0]))
	return doc, append(warnings, stale...), err
}

// assembleMarket returns the catalogue of all parts, and warnings about parts that are outdated or
// replaced.
func (s Service) assembleMarket(state market.State, cached market.CachedParts, offline market.Offline, facts catalog.ClusterFacts) (catalog.Catalogue, []string, error) {
	now := s.Now().UTC()
	parts := market.BuildParts(cached, offline, s.marketPolicy(), now)
	parts.Cluster = facts
	doc := catalog.Assemble(parts)
	if !doc.HasPrices() {
		return doc, nil, fault.E("assembling the catalogue of "+s.Region, fault.Invalid, state.JoinErrors()).
			WithHint("allow the calls that failed: without them the region has no offering with a price")
	}
	return doc, market.ListWarnings(state, cached, offline, s.marketPolicy(), now), nil
}

// ReadCatalogue reads the region's instance types, offerings and prices once, without a bucket and
// without the cluster's facts: the CLI prices a running cluster with them. It uses Market, Prices,
// Region, Isolated and Now of the service. A part that cannot be read is replaced by the embedded one,
// with a warning.
func (s Service) ReadCatalogue(ctx context.Context, facts catalog.ClusterFacts) (catalog.Catalogue, []string, error) {
	offline, err := s.readOffline()
	if err != nil {
		return catalog.Catalogue{}, nil, err
	}
	state := market.State{Readings: map[market.PartName]market.Reading{}}
	cached := market.CachedParts{Format: market.Format, Region: s.Region}
	if _, err := s.readParts(ctx, &state, &cached, s.Now().UTC()); err != nil {
		return catalog.Catalogue{}, nil, err
	}
	return s.assembleMarket(state, cached, offline, facts)
}

func (s Service) marketPolicy() market.Policy {
	return market.Policy{Isolated: s.Isolated, HasPriceList: catalog.HasPriceList(s.Region), Shifts: s.Shifts != nil}
}

func (s Service) readOffline() (market.Offline, error) {
	parts, borrowed, err := catalog.OfflineParts(s.Region)
	if err != nil {
		return market.Offline{}, fault.E("reading the embedded catalogue", fault.Bug, err)
	}
	return market.Offline{Parts: parts, FromOtherRegion: borrowed}, nil
}

// readDueParts reads the cluster and the parts that are due into the cache. It fails if
// the cluster was never described or does not exist, because no node could join it.
func (s Service) readDueParts(ctx context.Context, state *market.State, cached *market.CachedParts) (warnings []string, read bool, err error) {
	began := s.Now().UTC()
	info, err := s.describeCluster(ctx)
	switch {
	case err == nil:
		cached.Cluster = cached.Cluster.WithItems([]cloud.ClusterInfo{info}, began)
	case len(cached.Cluster.Items) == 0 || fault.Is(err, fault.Missing) || ctx.Err() != nil:
		return nil, false, err
	default:
		warnings = append(warnings, market.TruncateWarning("the cluster: using its previous description, because of this error: "+err.Error()))
	}
	read, err = s.readParts(ctx, state, cached, began)
	if err != nil {
		return nil, false, err
	}
	return warnings, read, nil
}

// readParts reads the parts that are due into the cache, and reports whether there was one. An error of
// a part is recorded in the state, also that it was still being read storingTime before the end of the
// context; the returned error is that of the context.
func (s Service) readParts(ctx context.Context, state *market.State, cached *market.CachedParts, began time.Time) (read bool, err error) {
	reading := ctx
	if end, bounded := ctx.Deadline(); bounded {
		var stop context.CancelFunc
		reading, stop = context.WithDeadline(ctx, end.Add(-storingTime))
		defer stop()
	}
	for _, name := range market.ListDue(*state, s.marketPolicy(), began) {
		if s.Now().Sub(began) > readingMax || reading.Err() != nil {
			break
		}
		err := s.readPart(reading, name, cached)
		if ctx.Err() != nil {
			return false, err
		}
		state.Readings[name] = state.Readings[name].WithOutcome(s.Now(), err)
		read = true
	}
	return read, nil
}

// readPart reads one part into the cache. On an error the cache keeps the old part.
func (s Service) readPart(ctx context.Context, name market.PartName, cached *market.CachedParts) error {
	now := s.Now().UTC()
	switch name {
	case market.Types:
		return updatePart(&cached.Types, now, func() ([]catalog.InstanceType, error) { return s.readTypes(ctx) })
	case market.Offerings:
		return updatePart(&cached.Offerings, now, func() ([]cloud.TypeOffering, error) { return s.Market.TypeOfferings(ctx) })
	case market.Zones:
		return updatePart(&cached.Zones, now, func() ([]cloud.AvailabilityZone, error) { return s.Market.AvailabilityZones(ctx) })
	case market.Spot:
		return updatePart(&cached.Spot, now, func() ([]cloud.SpotPrice, error) { return s.Market.SpotPrices(ctx, now) })
	case market.OnDemand:
		return updatePart(&cached.OnDemand, now, func() ([]cloud.OnDemandPrice, error) { return s.Prices.OnDemandPrices(ctx, s.Region) })
	default:
		shifts, err := s.Shifts.ZonalShifts(ctx, cached.Cluster.Items[0].ARN)
		if err == nil {
			cached.Shifts = cached.Shifts.WithItems(shifts, now)
		}
		return err
	}
}

// updatePart replaces a part by the items that read returns. An empty list is an error,
// because every region has items of each part.
func updatePart[T any](part *market.Part[T], now time.Time, read func() ([]T, error)) error {
	items, err := read()
	if err == nil && len(items) == 0 {
		err = fault.F("reading the market", fault.Invalid, "AWS returned an empty list")
	}
	if err != nil {
		return err
	}
	*part = part.WithItems(items, now)
	return nil
}

// readTypes returns the instance types on which a node can run.
func (s Service) readTypes(ctx context.Context) ([]catalog.InstanceType, error) {
	described, err := s.Market.InstanceTypes(ctx)
	if err != nil {
		return nil, err
	}
	var out []catalog.InstanceType
	for _, d := range described {
		if t, ok := catalog.ConvertType(d); ok {
			out = append(out, t)
		}
	}
	return out, nil
}
