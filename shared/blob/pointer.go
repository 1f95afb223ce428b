package blob

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// pointerKey returns the key of the only mutable object of a kind.
func pointerKey(kind string) string { return kind + "/latest" }

// SetLatest makes ref the latest document of its kind.
func SetLatest(ctx context.Context, store Store, ref event.Ref) error {
	text, err := json.Marshal(ref)
	if err != nil {
		return fault.E("encoding a pointer", fault.Bug, err)
	}
	if err := store.Put(ctx, pointerKey(ref.Kind), text); err != nil {
		return fmt.Errorf("writing the pointer to %s: %w", ref.Key(), err)
	}
	return nil
}

// GetLatest returns the reference to the latest document of a kind; fault.Missing before the first.
func GetLatest(ctx context.Context, store Store, kind string) (event.Ref, error) {
	text, err := store.Get(ctx, pointerKey(kind))
	if err != nil {
		return event.Ref{}, fmt.Errorf("reading the pointer to the latest of %s: %w", kind, err)
	}
	var ref event.Ref
	if err := json.Unmarshal(text, &ref); err != nil {
		return event.Ref{}, fault.E("decoding the pointer to the latest of "+kind, fault.Invalid, err)
	}
	return ref, ref.Validate()
}
