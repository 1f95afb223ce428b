package memblob_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
)

func TestSuite(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blobtest.Subject {
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		return blobtest.Subject{
			Store: memblob.New(memblob.Options{Now: clock}),
			Now:   clock, Advance: func(d time.Duration) { now = now.Add(d) },
		}
	})
}
