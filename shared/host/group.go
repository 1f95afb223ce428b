package host

import (
	"context"
	"errors"
)

// RunTogether runs functions concurrently. When the first one returns, it cancels the context of the others, and it
// returns after all of them have. The result joins their errors, without context.Canceled.
func RunTogether(ctx context.Context, run ...func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(run))
	for _, one := range run {
		go func() { ended <- one(ctx) }()
	}
	var failures []error
	for range run {
		err := <-ended
		stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
