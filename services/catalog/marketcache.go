package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// stateKey is the object key of the market's state.
const stateKey = market.Kind + "/latest"

// loadMarket returns the stored market of the region, or an empty one if the stored one
// is missing or cannot be used: AWS is then read again. A failing store is an error,
// because otherwise each tick would read all of AWS again.
func (s Service) loadMarket(ctx context.Context) (market.State, market.CachedParts, error) {
	fresh := market.State{Readings: map[market.PartName]market.Reading{}}
	empty := market.CachedParts{Format: market.Format, Region: s.Region}
	text, err := s.Blobs.Get(ctx, stateKey)
	if fault.Is(err, fault.Missing) {
		return fresh, empty, nil
	}
	if err != nil {
		return fresh, empty, fmt.Errorf("loading the market of %s: %w", s.Region, err)
	}
	state, ok := decodeState(text)
	if !ok || s.isMissing(ctx, state.Cache) {
		return fresh, empty, nil
	}
	cached, err := blob.Get[market.CachedParts](ctx, s.Blobs, state.Cache)
	switch {
	case fault.Is(err, fault.Poison) || err == nil && (cached.Format != market.Format || cached.Region != s.Region):
		return fresh, empty, nil
	case err != nil:
		return fresh, empty, fmt.Errorf("loading the market of %s: %w", s.Region, err)
	}
	return state, cached, nil
}

// decodeState decodes a state; ok is false if the text is not a valid state.
func decodeState(text []byte) (state market.State, ok bool) {
	err := json.Unmarshal(text, &state)
	return state, err == nil && state.Readings != nil && state.Cache.Validate() == nil
}

// isMissing reports whether a document does not exist. blob.Get returns fault.Retry for
// it, as if another service were about to write it; this service is the only writer.
func (s Service) isMissing(ctx context.Context, ref event.Ref) bool {
	_, err := s.Blobs.LastWritten(ctx, ref.Key())
	return fault.Is(err, fault.Missing)
}

// storeMarket stores the cached parts and then the state that refers to them.
func (s Service) storeMarket(ctx context.Context, state market.State, cached market.CachedParts) error {
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), market.Kind, cached)
	if err != nil {
		return fmt.Errorf("storing the market: %w", err)
	}
	state.Cache = ref
	text, err := json.Marshal(state)
	if err != nil {
		return fault.E("encoding the state of the market", fault.Bug, err)
	}
	if err := s.Blobs.Put(ctx, stateKey, text); err != nil {
		return fmt.Errorf("storing the market's state: %w", err)
	}
	return nil
}
