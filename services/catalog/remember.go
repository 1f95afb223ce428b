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

// stateKey is where the state lies.
const stateKey = market.Kind + "/latest"

// recalled is what was remembered of the region; nothing where that cannot be
// used, since AWS has it all. A store that does not answer is an error: reading
// everything again each minute would help nobody.
func (s Service) recalled(ctx context.Context) (market.State, market.Book, error) {
	fresh := market.State{Readings: map[market.Name]market.Reading{}}
	empty := market.Book{Format: market.Format, Region: s.Region}
	text, err := s.Blobs.Get(ctx, stateKey)
	if fault.Is(err, fault.Missing) {
		return fresh, empty, nil
	}
	if err != nil {
		return fresh, empty, fmt.Errorf("recalling the market of %s: %w", s.Region, err)
	}
	state, ok := stateOf(text)
	if !ok || s.gone(ctx, state.Book) {
		return fresh, empty, nil
	}
	book, err := blob.Get[market.Book](ctx, s.Blobs, state.Book)
	switch {
	case fault.Is(err, fault.Poison) || err == nil && (book.Format != market.Format || book.Region != s.Region):
		return fresh, empty, nil
	case err != nil:
		return fresh, empty, fmt.Errorf("recalling the market of %s: %w", s.Region, err)
	}
	return state, book, nil
}

// stateOf reads a state; false where it is none.
func stateOf(text []byte) (state market.State, ok bool) {
	err := json.Unmarshal(text, &state)
	return state, err == nil && state.Readings != nil && state.Book.Validate() == nil
}

// gone reports whether a document is not there. To blob.Get it is a Retry then,
// as if its writer were about to write it again; here the writer is we.
func (s Service) gone(ctx context.Context, ref event.Ref) bool {
	_, err := s.Blobs.Written(ctx, ref.Key())
	return fault.Is(err, fault.Missing)
}

// remember writes the book, if it is another, and then the state that names it.
func (s Service) remember(ctx context.Context, state market.State, book market.Book) error {
	ref, err := blob.Put(ctx, s.Blobs, s.Now(), market.Kind, book)
	if err != nil {
		return fmt.Errorf("remembering the market: %w", err)
	}
	state.Book = ref
	text, err := json.Marshal(state)
	if err != nil {
		return fault.E("encoding the state of the market", fault.Bug, err)
	}
	if err := s.Blobs.Put(ctx, stateKey, text); err != nil {
		return fmt.Errorf("remembering when the market was read: %w", err)
	}
	return nil
}
