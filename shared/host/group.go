package host

import (
	"context"
	"errors"
)

// RunTogether runs functions side by side. The first that returns ends the
// others' context; all have returned when RunTogether does. Errors of contexts that
// ended are the ordinary end, and left out.
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
