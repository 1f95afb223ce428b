package watcher

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// unsyncedTimeout is how long a cache may take before it is said that nothing is
	// planned, and unsyncedEvery how often it is said again.
	unsyncedTimeout  = 30 * time.Second
	unsyncedInterval = 10 * time.Second
)

// cacheSync is since when the cache is not synced, and when that was told last.
type cacheSync struct{ since, reportedAt time.Time }

// checkSynced is an error when it is time to tell that the cache is not synced.
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
	return fault.F("waiting for the watches", fault.Retry, "not every kind has been listed after %s, and nothing is planned before", waited.Round(time.Second)).
		WithHint("see whether the API server answers, and whether the rights of the chart (templates/rights-watcher.yaml) are given")
}
