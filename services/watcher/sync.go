package watcher

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// unsyncedTimeout is how long the cache may take to sync before the watcher reports an error,
	// and unsyncedInterval is how often it repeats the error.
	unsyncedTimeout  = 30 * time.Second
	unsyncedInterval = 10 * time.Second
)

// cacheSync records since when the cache has been unsynced, and when that was last reported.
type cacheSync struct{ since, reportedAt time.Time }

// checkSynced returns an error when it is time to report that the cache has not synced.
func (s *cacheSync) checkSynced(synced bool, now time.Time) error {
	if synced {
		*s = cacheSync{}
		return nil
	}
	if s.since.IsZero() {
		s.since = now
	}
	waited := now.Sub(s.since)
	if waited < unsyncedTimeout || now.Sub(s.reportedAt) < unsyncedInterval {
		return nil
	}
	s.reportedAt = now
	return fault.F("waiting for the watches", fault.Retry, "the cache has not synced after %s; nothing is planned until it has", waited.Round(time.Second)).
		WithHint("check that the API server responds and that the watcher has the rights of the chart (templates/rights-watcher.yaml)")
}
