package host_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/host"
)

func TestRunTogether(t *testing.T) {
	errFirst := errors.New("first")
	for _, c := range []struct {
		name string
		ends func(ctx context.Context) error
		stop time.Duration // when the outer context is cancelled
		took time.Duration
		want error
	}{
		{"the context is cancelled", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 3 * time.Second, 4 * time.Second, nil},
		{"one fails", func(context.Context) error { time.Sleep(time.Second); return errFirst }, time.Hour, 2 * time.Second, errFirst},
		{"one returns", func(context.Context) error { return nil }, time.Hour, time.Second, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				defer time.AfterFunc(c.stop, stop).Stop()
				began, cleaned := time.Now(), false
				err := host.RunTogether(ctx, c.ends, func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					cleaned = true
					return nil
				})
				if !cleaned || time.Since(began) != c.took {
					t.Errorf("cleaned up %t after %s, want after %s", cleaned, time.Since(began), c.took)
				}
				if !errors.Is(err, c.want) {
					t.Error(err)
				}
			})
		})
	}
}
